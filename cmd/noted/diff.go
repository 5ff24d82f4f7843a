package main

import "strings"

// change is one line of a difference: '-' only before, '+' only after, ' ' in both.
type change struct {
	op   byte
	line string
}

// diffLines is a shortest difference of two texts by lines. Beyond a few
// million comparisons (two texts of some two thousand lines that share neither
// start nor end) it says only what goes and what comes.
func diffLines(before, after string) []change {
	x, y := lines(before), lines(after)
	var head, tail []change
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		head = append(head, change{' ', x[0]})
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		tail = append(tail, change{' ', x[len(x)-1]})
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	out := append(head, middle(x, y)...)
	for i := len(tail) - 1; i >= 0; i-- {
		out = append(out, tail[i])
	}
	return out
}

func middle(x, y []string) []change {
	const most = 4 << 20
	var out []change
	if len(x)*len(y) > most {
		for _, l := range x {
			out = append(out, change{'-', l})
		}
		for _, l := range y {
			out = append(out, change{'+', l})
		}
		return out
	}
	// common[i][j] is the length of the longest common subsequence of x[i:] and y[j:].
	common := make([][]int32, len(x)+1)
	for i := range common {
		common[i] = make([]int32, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			out = append(out, change{' ', x[i]})
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			out = append(out, change{'-', x[i]})
			i++
		default:
			out = append(out, change{'+', y[j]})
			j++
		}
	}
	return out
}

// lines splits s; an empty text has none.
func lines(s string) []string {
	s = strings.TrimSuffix(s, "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
