package main

// nearest returns the candidate that word was probably meant to be, "" if it
// resembles none: at most a third of its letters, and at least one, differ.
func nearest(word string, candidates []string) string {
	best, found := max(1, len(word)/3)+1, ""
	for _, c := range candidates {
		if d := distance(word, c); d < best {
			best, found = d, c
		}
	}
	return found
}

// didYouMean is the end of a sentence about an unknown word.
func didYouMean(word string, candidates []string) string {
	if c := nearest(word, candidates); c != "" {
		return "; did you mean " + c + "?"
	}
	return ""
}

// distance counts the insertions, deletions, substitutions and swaps of
// neighbours between a and b (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
