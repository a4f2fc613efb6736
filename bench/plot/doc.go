// Package plot draws lines and bars as SVG, for reports that fetch nothing.
//
// Its law: a drawing is a pure function of its values. It has no script and no style of its
// own but what [Standalone] wraps around it; text and axes take the colour of the page, so
// that they are read in the light and in the dark.
package plot
