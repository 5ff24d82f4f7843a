# The first script of a Python worker: it waits for one document on standard
# input, runs the parts in it, and ends the process.


def boot():
    import atexit
    import io
    import json
    import os
    import posix
    import random
    import sys
    import time
    import types
    from _ast import Expr, Expression

    OK, FAILED, EXHAUSTED = 0, 1, 2

    class Output(io.FileIO):
        used = False

        def write(self, b):
            Output.used = True
            return super().write(b)

    out = io.TextIOWrapper(
        io.BufferedWriter(Output(1, "wb", closefd=False)),
        encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=True,
    )
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = out

    # A number that looks random and is the same in every run is worse than none.
    def no_secrets(n):
        raise NotImplementedError("a fence has no source of secrets")

    posix.urandom = os.urandom = random._urandom = no_secrets

    def no_waiting(seconds):
        raise NotImplementedError("a fence cannot wait: its clock stands")

    time.sleep = no_waiting
    seed_of_random = random.Random.seed
    granted = None

    def seed(self, a=None, version=2):
        if a is None:
            if granted is None:
                raise NotImplementedError('random numbers need a seed: give one, or ask for it with wants="seed"')
            a = granted.getrandbits(256)
        seed_of_random(self, a, version)

    class Unseeded(random.Random):
        seeded = False

        def seed(self, a=None, version=2):
            if a is not None or granted is not None:
                seed(self, a, version)
                self.seeded = True

        def random(self):
            if not self.seeded:
                seed(self)
            return super().random()

        def getrandbits(self, k):
            if not self.seeded:
                seed(self)
            return super().getrandbits(k)

    shared = Unseeded()
    for name in dir(shared):
        if not name.startswith("_") and callable(getattr(random, name, None)) and name[0].islower():
            setattr(random, name, getattr(shared, name))
    random._inst = shared
    random.Random.seed = seed

    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    g = main.__dict__
    g["__builtins__"] = sys.modules["builtins"]

    parts, names = [], set()

    def read():
        nonlocal granted
        document = json.loads(sys.stdin.buffer.read())
        for p in document["parts"]:
            parts.append((p["name"], p["source"]))
            names.add(p["name"])
        if "seed" in document:
            granted = random.Random.__new__(random.Random)
            seed_of_random(granted, document["seed"])
            shared.seed()
        if "args" in document:
            g["args"] = document["args"]
        if "page" in document:
            text = document["page"]
            lines = text.split("\n")
            if not lines[-1]:
                lines.pop()
            g["page"] = types.SimpleNamespace(text=text, lines=lines)
        for name in ("clock", "query"):
            if name in document:
                g[name] = types.SimpleNamespace(**document[name])

    def lines_of(e):
        lines, t = [], e.__traceback__
        while t is not None:
            name = t.tb_frame.f_code.co_filename
            if name in names:
                lines.append((name, t.tb_lineno))
            t = t.tb_next
        return lines[::-1]

    def explain(e):
        kind = type(e).__name__
        lines = lines_of(e)
        if isinstance(e, SyntaxError) and e.filename in names:
            lines, text = [(e.filename, e.lineno)], str(e.msg)
        else:
            try:
                text = str(e)
            except BaseException:
                text = "its text cannot be shown"
        text = f"{kind}: {text}" if text else kind
        if not lines:
            return text
        text = f"{lines[0][0]}:{lines[0][1]}: {text}"
        callers = []
        for name, line in lines[1:]:
            caller = str(line) if name == "fence" else f"{name}:{line}"
            if not callers or callers[-1] != caller:
                callers.append(caller)
        if callers:
            text += "\ncalled from line " + ", ".join(callers[:5])
        return text

    def run():
        compiled = []
        for name, source in parts[:-1]:
            compiled.append(compile(source, name, "exec", 0, True))
        name, source = parts[-1]
        tree = compile(source, name, "exec", 0x400, True)  # the syntax tree only
        value = None
        if tree.body and isinstance(tree.body[-1], Expr):
            value = compile(Expression(tree.body.pop().value), name, "eval", 0, True)
        compiled.append(compile(tree, name, "exec", 0, True))
        for code in compiled:
            exec(code, g)
        if value is not None:
            value = eval(value, g)
        flush()
        if value is not None and not Output.used:
            print(value, file=out)

    def flush():
        for stream in sys.stdout, sys.stderr:  # which may be the fence's own
            if stream is not out:
                try:
                    stream.flush()
                except Exception:
                    pass
        out.flush()

    def finish():
        atexit._run_exitfuncs()
        flush()

    def fail(status, text):
        try:
            finish()
        except BaseException:
            pass
        posix.write(2, text.encode("utf-8", "backslashreplace")[:8192])
        posix._exit(status)

    try:
        read()
        run()
        finish()
    except SystemExit as e:
        if e.code is None or e.code == 0:
            finish()
            posix._exit(OK)
        if isinstance(e.code, int):
            fail(FAILED, f"the fence ended itself with status {e.code}")
        fail(FAILED, str(e.code))
    except MemoryError:
        g = None
        main.__dict__.clear()
        fail(EXHAUSTED, "MemoryError")
    except BaseException as e:
        try:
            text = explain(e)
        except BaseException:
            text = "the error cannot be shown"
        fail(FAILED, text)
    posix._exit(OK)


boot()
