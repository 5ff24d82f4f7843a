// The first script of a JavaScript worker: it waits for one document on standard
// input, runs the parts in it as scripts, and ends the process.
import * as std from 'std';
import * as os from 'qjs:os';

const G = globalThis;
const { apply, ownKeys, getOwnPropertyDescriptor, getPrototypeOf, defineProperty, deleteProperty } = Reflect;
const { freeze, create } = Object;
const { isArray } = Array;
const { stringify, parse } = JSON;
const { loadScript, out, err, exit, open, strerror } = std;
const text = String, join = Array.prototype.join, promised = Promise.prototype.then, P = Promise, D = Date, E = Error, OutOfMemory = InternalError;
const dateText = Date.prototype.toISOString, symbolText = Symbol.prototype.toString;

// All that a fence can name beside what it declares itself.
const names = [
  'Object', 'Error', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError',
  'InternalError', 'AggregateError', 'Array', 'parseInt', 'parseFloat', 'isNaN', 'isFinite', 'decodeURI',
  'decodeURIComponent', 'encodeURI', 'encodeURIComponent', 'escape', 'unescape', 'Infinity', 'NaN', 'undefined',
  'Number', 'Boolean', 'String', 'Math', 'Reflect', 'Symbol', 'globalThis', 'Date', 'RegExp', 'JSON', 'Proxy', 'Map',
  'Set', 'WeakMap', 'WeakSet', 'ArrayBuffer', 'Uint8ClampedArray', 'Int8Array', 'Uint8Array', 'Int16Array',
  'Uint16Array', 'Int32Array', 'Uint32Array', 'BigInt64Array', 'BigUint64Array', 'Float32Array', 'Float64Array',
  'DataView', 'Promise', 'BigInt',
];
for (const name of ownKeys(G)) if (!names.includes(name)) deleteProperty(G, name);

// What would compile text: by no way is there a function constructor, nor eval.
const kinds = [function () {}, function* () {}, async function () {}, async function* () {}];
for (const f of kinds) deleteProperty(getPrototypeOf(f), 'constructor');
deleteProperty(Math, 'random');

let used = false;
const write = (s) => { used = true; out.puts(s); };

// show is a value as text, for a person: text as it is, plain data as it would be
// written down, no getter called and not more than a few levels.
function show(v, depth, seen) {
  switch (typeof v) {
    case 'string': return depth ? stringify(v) : v;
    case 'symbol': return apply(symbolText, v, []);
    case 'bigint': return text(v) + 'n';
    case 'number': return v === 0 && 1 / v < 0 ? '-0' : text(v);
    case 'function': return '[function]';
    case 'object': break;
    default: return text(v);
  }
  if (v === null) return 'null';
  if (v instanceof E) return brief(v);
  if (v instanceof D) return apply(dateText, v, []);
  for (let s = seen; s; s = s.next) if (s.v === v) return '[circular]';
  if (depth > 4) return isArray(v) ? '[…]' : '{…}';
  const list = isArray(v), parts = [], next = { v, next: seen };
  let n = 0;
  if (v instanceof Map || v instanceof Set) {
    return (v instanceof Map ? 'Map ' : 'Set ') + show([...v], depth, next);
  }
  for (const k of ownKeys(v)) {
    const d = getOwnPropertyDescriptor(v, k);
    if (!d || !d.enumerable) continue;
    if (++n > 1000) { parts[parts.length] = '…'; break; }
    const shown = 'value' in d ? show(d.value, depth + 1, next) : '[getter]';
    const plain = typeof k === 'string' && /^[A-Za-z_$][\w$]*$/.test(k);
    parts[parts.length] = list && typeof k === 'string' ? shown : (typeof k === 'symbol' ? '[' + apply(symbolText, k, []) + ']' : plain ? k : stringify(k)) + ': ' + shown;
  }
  const inner = apply(join, parts, [', ']);
  return list ? '[' + inner + ']' : parts.length ? '{ ' + inner + ' }' : '{}';
}

function line(values) {
  const parts = [];
  for (let i = 0; i < values.length; i++) parts[i] = show(values[i], 0, null);
  write(apply(join, parts, [' ']) + '\n');
}
const print = { print(...values) { line(values); } }.print;
const console = {};
for (const name of ['log', 'info', 'warn', 'error', 'debug']) console[name] = print;
const put = (where, name, value, fixed) => defineProperty(where, name, { value, writable: !fixed, configurable: !fixed, enumerable: false });
put(G, 'print', print);
put(G, 'console', freeze(console));

const parts = create(null);

// brief is an error in words. Only what the engine itself says of lines is taken.
function brief(e) {
  let name = 'Error', message = '';
  try { name = text(e.name); message = text(e.message); } catch { return 'the error cannot be shown'; }
  return message ? name + ': ' + message : name;
}

function explain(e) {
  if (!(e instanceof E)) return 'uncaught ' + show(e, 0, null);
  let where = [];
  const d = getOwnPropertyDescriptor(e, 'stack');
  if (d && typeof d.value === 'string') {
    // A function that is all on its first line has no number; a script begins at 1.
    const pattern = /^    at (.*?) ?\(?\/([a-z2-7]+)(?::(\d+))?\)?$/;
    for (const l of d.value.split('\n')) {
      const m = pattern.exec(l);
      if (m && m[2] in parts) where[where.length] = [m[2], m[3] || (m[1] === '<eval>' ? '1' : '')];
    }
  }
  let words = brief(e);
  if (!where.length) return words;
  words = where[0][0] + (where[0][1] && ':' + where[0][1]) + ': ' + words;
  const callers = [];
  for (const [name, number] of where.slice(1)) {
    const caller = name === 'fence' ? number : name + (number && ':' + number);
    if (caller && callers[callers.length - 1] !== caller) callers[callers.length] = caller;
  }
  return callers.length ? words + '\ncalled from line ' + callers.slice(0, 5).join(', ') : words;
}

function fail(e) {
  let words = 'the error cannot be shown', status = 1;
  try {
    // Where there is no memory for an error either, null is thrown.
    if (e === null || e instanceof OutOfMemory && e.message === 'out of memory') status = 2;
    words = explain(e);
  } catch { }
  out.flush();
  err.puts(words);
  err.flush();
  exit(status);
}

function done(value) {
  try {
    if (value !== undefined && !used) line([value]);
    out.flush();
  } catch (e) { fail(e); }
  exit(0);
}

// An awaited promise of the fence's is waited for before its value is shown.
function settle(value) {
  if (value instanceof P) return void apply(promised, value, [done, fail]);
  done(value);
}

const deepFreeze = (v) => {
  if (typeof v === 'object' && v !== null) {
    for (const k of ownKeys(v)) deepFreeze(v[k]);
    freeze(v);
  }
  return v;
};

const document = parse(std.in.readAsString());
for (const p of document.parts) parts[p.name] = true;
if ('page' in document) {
  const text = document.page, lines = text.split('\n');
  if (!lines[lines.length - 1]) lines.pop();
  document.page = { text, lines };
}
for (const name of ['args', 'page', 'clock', 'query']) if (name in document) put(G, name, deepFreeze(document[name]), true);
if ('seed' in document) {
  // Small fast counter, 128 bits of state, of 32 bits each.
  let [a, b, c, n] = [0, 8, 16, 24].map((i) => parseInt(document.seed.substr(i, 8), 16) | 0);
  const next = () => {
    const t = (((a + b) | 0) + n) | 0;
    n = (n + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 16; i++) next();
  put(Math, 'random', { random() { return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992; } }.random);
}

// What a directory does is bounded where it is granted; here it has its words.
if ('dirs' in document) {
  const { readdir, stat, S_IFMT, S_IFREG, S_IFDIR } = os, { sort } = Array.prototype;
  const no = (path, why) => { throw new E(path + ': ' + why); };
  const at = (path) => {
    if (typeof path !== 'string') throw new TypeError('a path is a string');
    for (const d of document.dirs) if (!path.includes('\0') && (path === d || path.startsWith(d + '/'))) return path;
    no(path, 'it lies in no directory that was granted; the path is that of wants, from the root');
  };
  const described = (path) => {
    const [s, errno] = stat(at(path));
    if (errno) no(path, strerror(errno));
    const kind = (s.mode & S_IFMT) === S_IFREG ? 'file' : (s.mode & S_IFMT) === S_IFDIR ? 'dir' : 'other';
    return { kind, size: s.size, modified: s.mtime };
  };
  const opened = (path, how) => {
    const e = {}, f = open(path, how, e);
    return f || no(path, strerror(e.errno));
  };
  put(G, 'dir', freeze({
    list(path) {
      const [names, errno] = readdir(at(path));
      if (errno) no(path, strerror(errno));
      const list = [];
      for (const n of names) if (n !== '.' && n !== '..') list[list.length] = n;
      return apply(sort, list, []);
    },
    read(path) {
      if (described(path).kind !== 'file') no(path, 'it is not a file');
      const f = opened(path, 'r'), s = f.readAsString(), bad = f.error();
      f.close();
      if (bad) no(path, 'it cannot be read');
      return s;
    },
    stat: (path) => described(path),
    write(path, s) {
      if (typeof s !== 'string') throw new TypeError('what is written is a string');
      const f = opened(at(path), 'w');
      f.puts(s);
      f.flush();
      const bad = f.error();
      if (f.close() || bad) no(path, 'it was not written');
      return true;
    },
  }), true);
}

try {
  let value;
  for (const p of document.parts) value = loadScript('/' + p.name);
  settle(value);
} catch (e) { fail(e); }
