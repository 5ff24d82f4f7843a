//go:build !race

package notebook

const hostileSize = MaxBody
