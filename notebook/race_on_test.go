//go:build race

package notebook

// hostileSize is smaller under the race detector, which makes the parser some
// twenty times slower and has nothing to find in it.
const hostileSize = MaxBody / 8
