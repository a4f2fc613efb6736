// Package splice decides how the text of a continuation joins the text that the client already has.
//
// Law: a continuation is not trusted (DESIGN §4). Its head is held only while more than one reading of it is alive, what
// is decided is decided by the text alone (never by how it was cut into pieces), and nothing but a number of bytes to
// leave out is ever changed: no byte is added, rewritten or reordered. Pure; works on decoded UTF-8.
//
// # Readings
//
//	exact     it goes on where the text was cut
//	anchor    it first repeats the anchor that an asked continuation demands
//	overlap   it first repeats some other tail: at least 24 non-space characters, or half of what was said
//	whole     it is the whole answer again, from its start
//	preamble  "Sure! Here is the continuation:" before one of these; before exact only with a line break behind it;
//	          or the marks that stood around the anchor in the instruction, repeated with it
//	fence     the code fence that is still open, opened again, before one of these
//	sentinel  an asked continuation says that nothing is missing
//
// Repetition is compared with runs of white space folded (up to 1 KiB a run) and cut on exact bytes. The tail is looked
// for in the last 16 KiB of folded text, the whole answer at any length. Cost is linear: an online Knuth-Morris-Pratt
// search finds the longest repeated tail, a cursor follows the whole answer, which is not kept in memory.
//
// # What is believed when
//
// The more a reading is expected, the less evidence it needs.
//
//   - Prefill is exact. Only the whole answer (8 non-space characters of agreement or more) is looked for besides, as a
//     guard against hosts that ignore the prefill; if it then differs, the attempt failed. Where the exact reading would
//     glue two words ("fox" + "Sure!"), the other readings are looked for too: a true continuation in the middle of a
//     word does not begin with a repetition.
//   - Echoing is exact, or a repetition: one that is the whole of what was said counts at any length.
//   - Asked must show that it goes on. Besides the anchor or a repetition that is: white space or joining punctuation
//     first, or a text that was cut where no word can be glued. A word at a word, a new sentence at the end of one without
//     a space, or a Markdown block in the middle of a line is refused as unanchored. Scripts that do not put spaces
//     between words (Chinese, Japanese, Thai ...) have no such sign, and are accepted.
//
// # The trade-off
//
// Too strict costs an attempt; too lax shows the caller a wrong text. The package leans to the strict side under Asked:
// an honest model that goes on in the middle of a word without the anchor is refused. It is still fooled by a
// new thought that begins with a space or a new line, and in unspaced scripts. A text that agrees for 24 non-space
// characters with what was shown and then differs is refused as diverged, except where what was shown itself says them
// twice: what is said twice (table rows, refrains) may be said a third time. A repetition of less than 8 characters is text
// ("very " + "very good" stays), except where keeping it would glue words ("AB" + "ABCD"), and so is a tail that is one piece
// said over and over ("--------"). A preamble is left out only when nothing else can be meant: one that might be
// a heading ("Continuing from a prefix") is refused, neither shown nor lost. An answer that is said again with other white
// space inside its tokens (JSON made compact) is not recognised here; its Document refuses it.
//
// [Guard] keeps the sentinel out of the text behind the seam. [Stops] finds a stop sequence that begins before the seam
// and ends behind it. [Document] and [Schema] check structured output over the seam.
package splice
