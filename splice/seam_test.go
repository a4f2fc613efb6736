package splice

import (
	"fmt"
	"strings"
	"testing"
)

const fox = "The quick brown fox"

// story is long enough that an overlap must have 24 non-space characters.
const story = "Once upon a time there was a small village by the sea. Its people caught fish and mended nets, and every evening they sat by the fire"

// want is what a seam must say, in one line: the text the client has afterwards and the kind, or the reason.
func outcome(c Config, text string, v Verdict) string {
	switch v.State {
	case Joined:
		return fmt.Sprintf("%v: %s", v.Kind, string(c.Said)+text[v.Skip:])
	case Failed:
		return "failed: " + v.Reason
	}
	return "holding"
}

func run(c Config, text string, pieces ...string) Verdict {
	s := New(c)
	if pieces == nil {
		pieces = []string{text}
	}
	for _, p := range pieces {
		s.Push([]byte(p))
	}
	return s.End()
}

type seamCase struct {
	name string
	c    Config
	text string
	want string
}

func asked(said string) Config {
	t := strings.TrimRight(said, " \n\t")
	return Config{Said: []byte(said), Stripped: len(said) - len(t), Manner: Asked, Anchor: min(len(t), 44), Sentinel: "<<NOTHING_MISSING>>", Opens: '→', Closes: '←'}
}

func prefill(said string) Config {
	t := strings.TrimRight(said, " \n\t")
	return Config{Said: []byte(said), Stripped: len(said) - len(t)}
}

func echoing(said string) Config {
	c := prefill(said)
	c.Manner = Echoing
	return c
}

func plain(said string) Config {
	c := asked(said)
	c.Anchor = 0
	return c
}

func json(said string) Config {
	c := asked(said)
	c.JSON = true
	return c
}

var seamCases = []seamCase{
	// D4: the table of the field report, asked.
	{"d4 goes on", asked(fox), " jumps", "exact: The quick brown fox jumps"},
	{"d4 repeats the tail", asked(fox), "brown fox jumps", "overlap: The quick brown fox jumps"},
	{"d4 begins again", asked(fox), "The quick brown fox jumps", "whole: The quick brown fox jumps"},
	{"d4 talks", asked(fox), "Sure! Here is", "failed: preamble"},
	{"d4 glues", asked(fox), "x jumps", "failed: unanchored"},
	{"d4 opens a fence mid line", asked(fox), "```go\nx\n```", "failed: unanchored"},
	// The same under prefill: a word goes on, and only what would glue is looked at twice.
	{"d4 prefill goes on", prefill(fox), " jumps", "exact: The quick brown fox jumps"},
	{"d4 prefill goes on in the word", prefill(fox), "es jump", "exact: The quick brown foxes jump"},
	{"d4 prefill repeats the tail", prefill(fox), "brown fox jumps", "overlap: The quick brown fox jumps"},
	{"d4 prefill begins again", prefill(fox), "The quick brown fox jumps", "whole: The quick brown fox jumps"},
	{"d4 prefill talks", prefill(fox), "Sure! Here is", "failed: preamble"},
	{"d10 whole answer over two letters", prefill("AB"), "ABCD", "whole: ABCD"},
	{"d1 two letters go on", prefill("AB"), "CD", "exact: ABCD"},
	{"d12 a fresh answer that differs", prefill(fox + " jumps"), "The quick brown dog", "failed: diverged"},

	// Anchors.
	{"anchor", asked(story), "nets, and every evening they sat by the fire and sang.", "anchor: " + story + " and sang."},
	{"anchor with its spaces folded", asked(story), "nets,  and every\nevening they sat by the fire and sang.", "anchor: " + story + " and sang."},
	{"anchor behind white space", asked(story), "\n\nnets, and every evening they sat by the fire, singing", "anchor: " + story + ", singing"},
	{"more than the anchor", asked(story), "mended nets, and every evening they sat by the fire.", "overlap: " + story + "."},
	{"part of the anchor, long enough", asked(story), "every evening they sat by the fire.", "overlap: " + story + "."},
	{"part of the anchor, too short", asked(story), "by the fire.", "failed: unanchored"},
	{"anchor that goes on in the word", asked(story), "nets, and every evening they sat by the fireplace", "anchor: " + story + "place"},
	{"anchor with the marks of the instruction", asked(story), "→nets, and every evening they sat by the fire← and sang.", "preamble+anchor: " + story + " and sang."},
	{"with the first of them", asked(story), "→nets, and every evening they sat by the fire and sang.", "preamble+anchor: " + story + " and sang."},
	{"with them on a line of their own", asked(story), "\n→nets, and every evening they sat by the fire←, and sang.", "preamble+anchor: " + story + ", and sang."},
	{"with them behind a preamble", asked(story), "Sure, here is the rest:\n\n→nets, and every evening they sat by the fire← and sang.", "preamble+anchor: " + story + " and sang."},
	{"with them, and nothing more", asked(story), "→nets, and every evening they sat by the fire←", "failed: empty"},
	{"with them, and the sentinel", asked(story), "→nets, and every evening they sat by the fire← <<NOTHING_MISSING>>", "preamble+sentinel: " + story},
	{"with them, and misquoted", asked(story), "→nets, and every evening they sit by the fire← and sang", "failed: diverged"},
	{"arrows that are text", asked("From A"), " → B ← C", "exact: From A → B ← C"},
	{"an arrow that is text, without a space", asked("From A"), "→B", "exact: From A→B"},
	{"an arrow behind the anchor that is text", asked("From A"), "From A← B", "whole: From A← B"},
	{"anchor misquoted", asked(story), "nets, and every evening they sit by the fire and", "failed: diverged"},
	{"anchor and nothing", asked(story), "nets, and every evening they sat by the fire", "failed: empty"},
	{"anchor and the sentinel", asked(story), "nets, and every evening they sat by the fire\n<<NOTHING_MISSING>>", "sentinel: " + story},
	{"short anchor is the whole", asked("very "), "very good", "whole: very good"},
	{"quotation marks of omission", asked(story), "...nets, and every evening they sat by the fire and", "preamble+anchor: " + story + " and"},
	{"omission that is text", asked("Well"), "... no", "exact: Well... no"},
	{"anchor in a text of period", asked(strings.Repeat("ha ", 60) + "ha"), strings.TrimSpace(strings.Repeat("ha ", 15)) + "! ha ha", "anchor: " + strings.Repeat("ha ", 60) + "ha! ha ha"},
	{"anchor that stands earlier too", asked("nets, and every evening they sat by the fire. So be it: nets, and every evening they sat by the fire"),
		"nets, and every evening they sat by the fire. The end", "anchor: nets, and every evening they sat by the fire. So be it: nets, and every evening they sat by the fire. The end"},

	// Accidents.
	{"short overlap is text", prefill("very "), "very good", "exact: very very good"},
	{"short overlap is text, asked", plain("It was very "), "very good", "exact: It was very very good"},
	{"short overlap that would glue", plain("The fox"), "fox jumps", "overlap: The fox jumps"},
	{"shared full stop", prefill("It ended."), ". .", "exact: It ended.. ."},
	{"a table row said twice may be said a third time", prefill("| zero | zero | zero | zero |\n| zero | zero | zero | zero |\n"),
		"| zero | zero | zero | zero |\n| one |", "exact: | zero | zero | zero | zero |\n| zero | zero | zero | zero |\n| zero | zero | zero | zero |\n| one |"},
	{"a refrain under prefill", prefill("la la la la la la la la la la "), "la la la la la la la la la la!", "exact: " + strings.Repeat("la ", 19) + "la!"},

	{"a rule of dashes, cut within", echoing("A title\n\n------------------------------"), "------------------------------\n\nText", "exact: A title\n\n------------------------------------------------------------\n\nText"},

	{"a tail that stands at the start too, and no more", echoing("nets and boats lay by the old fire. So be it: nets and boats lay by the old fire"),
		"nets and boats lay by the old fire", "overlap: nets and boats lay by the old fire. So be it: nets and boats lay by the old fire"},

	// White space.
	{"d6 same blank line", prefill("list:\n\n"), "\n\n- a", "whitespace: list:\n\n- a"},
	{"d6 none", prefill("list:\n\n"), "- a", "exact: list:\n\n- a"},
	{"d6 one line break", prefill("list:\n\n"), "\n- a", "whitespace: list:\n\n- a"},
	{"d6 asked", asked("list:\n\n"), "list:\n\n- a", "whole: list:\n\n- a"},
	{"d6 asked without anchor", asked("list:\n\n"), "\n- a", "whitespace: list:\n\n- a"},
	{"indentation said again", prefill("a:\n\n    "), "    b", "whitespace: a:\n\n    b"},
	{"line break and indentation", prefill("a:\n\n"), "\n  - b", "whitespace: a:\n\n  - b"},
	{"a space", prefill("The quick "), " brown", "whitespace: The quick brown"},
	{"white space that was sent stays", Config{Said: []byte("a\n")}, "\nb", "exact: a\n\nb"},
	{"only white space was said", prefill("\n\n"), " \nHello", "whitespace: \n\nHello"},
	{"overlap behind white space shown", asked(story + "\n"), "every evening they sat by the fire\nThen", "overlap: " + story + "\nThen"},

	// The whole answer.
	{"whole with other spaces", asked(story), strings.ReplaceAll(story, " ", "  ") + " and sang", "whole: " + story + " and sang"},
	{"whole that says nothing new", asked(story), story, "whole: " + story},
	{"whole that ends early", asked(story), story[:80], "failed: short"},
	{"whole that differs", asked(story), story[:80] + "hunted", "failed: diverged"},
	{"whole that differs under prefill", prefill(story), story[:80] + "hunted", "failed: diverged"},
	{"json that begins again", json(`{"name": "Ada", "born": 18`), `{"name": "Ada", "died": 1`, "failed: diverged"},
	{"json that is said again", json(`{"name": "Ada", "born": 18`), `{"name": "Ada", "born": 1815}`, `whole: {"name": "Ada", "born": 1815}`},
	{"json goes on behind a colon", json(`{"name": "Ada", "born":`), `1815}`, `exact: {"name": "Ada", "born":1815}`},
	{"json that is said again in a fence", json(`{"name": "Ada", "born": 18`), "```json\n{\"name\": \"Ada\", \"born\": 1815}\n```", "fence+whole: {\"name\": \"Ada\", \"born\": 1815}\n```"},
	{"json that goes on in a fence", json(`{"name": "Ada",`), "```json\n  \"born\": 1815}\n```", "fence+exact: {\"name\": \"Ada\",  \"born\": 1815}\n```"},
	{"short answer again behind its full stop", prefill("Hello!"), "Hello! How are you?", "whole: Hello! How are you?"},

	// Preambles and fences.
	{"preamble before the anchor", asked(story), "Sure! Here is the continuation:\n\nnets, and every evening they sat by the fire and sang", "preamble+anchor: " + story + " and sang"},
	{"preamble in the line of the anchor", asked(story), "Here's the rest: nets, and every evening they sat by the fire and sang", "preamble+anchor: " + story + " and sang"},
	{"preamble before the whole", asked(fox), "**Certainly!** Continuing from where I left off:\n\n" + fox + " jumps", "preamble+whole: " + fox + " jumps"},
	{"preamble before a new line", asked("One.\n\n"), "Sure, here is the continuation:\n\nTwo.", "preamble+exact: One.\n\nTwo."},
	{"preamble before a word", asked(fox), "Here is the continuation:\n\njumps", "failed: unanchored"},
	{"preamble without line break", asked("One.\n\n"), "Here is the continuation: two.", "failed: preamble"},
	{"preamble and no more", asked("One.\n\n"), "Here is the continuation:", "failed: preamble"},
	{"preamble in german", asked(story), "Natürlich! Hier ist die Fortsetzung:\n" + story[90:] + ".", "preamble+overlap: " + story + "."},
	{"preamble in chinese", asked("今天天气很好，我们去公园散步，"), "好的，以下是续写：\n看见了很多花。", "preamble+exact: 今天天气很好，我们去公园散步，看见了很多花。"},
	{"sure in mid sentence", asked("I am not"), " sure, here is why", "exact: I am not sure, here is why"},
	{"preamble or heading", asked("One.\n\n## 2."), " Continuing from a prefix\n\nTwo.", "failed: preamble"},
	{"an answer about continuing", asked("One.\n\n"), "Continuing education matters.", "exact: One.\n\nContinuing education matters."},
	{"answer that began with a preamble", asked("Sure! Here is the full story:\n\n" + story), "Sure! Here is the full story:\n\n" + story + ".", "whole: Sure! Here is the full story:\n\n" + story + "."},
	{"fence again before the tail", asked("Code:\n```go\nfunc main() {\n\tfmt.Println(1)\n\tfmt."), "```go\n\tfmt.Println(1)\n\tfmt.Print(2)", "fence+overlap: Code:\n```go\nfunc main() {\n\tfmt.Println(1)\n\tfmt.Print(2)"},
	{"fence again before a line that is cut", asked("Code:\n```go\nfunc main() {\n\tfmt.Println(1)\n\tfmt."), "```go\n\tfmt.Print(2)", "failed: unanchored"},
	{"fence with all of its code again", asked("Code:\n```go\nfunc main() {\n\tfmt.Println(1)\n\tfmt."), "```go\nfunc main() {\n\tfmt.Println(1)\n\tfmt.Print(2)", "overlap: Code:\n```go\nfunc main() {\n\tfmt.Println(1)\n\tfmt.Print(2)"},
	{"fence again before the rest", asked("Code:\n```go\nfunc main() {\n"), "```go\n\tprint()\n}", "fence+exact: Code:\n```go\nfunc main() {\n\tprint()\n}"},
	{"fence closed", asked("Code:\n```go\nfunc main() {}\n"), "```\nDone.", "exact: Code:\n```go\nfunc main() {}\n```\nDone."},
	{"fence closed in a new line", asked("Code:\n```go\nfunc main() {}"), "\n```\nDone.", "exact: Code:\n```go\nfunc main() {}\n```\nDone."},
	{"preamble and fence", asked("Code:\n```go\nfunc main() {\n"), "Sure! Here is the rest:\n```go\n\tprint()\n}", "preamble+fence+exact: Code:\n```go\nfunc main() {\n\tprint()\n}"},
	{"fence before a glued word", asked("Code:\n```go\nfunc ma"), "```go\nin() {", "failed: unanchored"},

	// Asked, without anything repeated.
	{"new sentence glued to the last", asked("It ended."), "The dog", "failed: unanchored"},
	{"number goes on", asked("Pi is 3."), "14", "exact: Pi is 3.14"},
	{"list in mid line", asked(fox), "- one", "failed: unanchored"},
	{"chinese goes on", asked("你好，世"), "界", "exact: 你好，世界"},
	{"emoji goes on", asked("done "), "🎉", "exact: done 🎉"},
	{"punctuation goes on", asked(fox), ", which", "exact: The quick brown fox, which"},

	// Nothing missing, nothing said.
	{"sentinel", asked(fox), "<<NOTHING_MISSING>>", "sentinel: " + fox},
	{"sentinel in quotes", asked(fox), " \"NOTHING_MISSING\".\n", "sentinel: " + fox},
	{"sentinel and talk", asked(fox), "<<NOTHING_MISSING>> Bye!", "failed: after_sentinel"},
	{"whole and sentinel", asked(story), story + " <<NOTHING_MISSING>>", "sentinel: " + story},
	{"a word that begins like the sentinel", asked("Say "), "NOTHING_MISSINGS", "exact: Say NOTHING_MISSINGS"},
	{"nothing, asked", asked(fox), "", "failed: empty"},
	{"white space, asked", asked(fox), " \n", "failed: empty"},
	{"nothing, prefill", prefill(fox), "", "empty: " + fox},
	{"white space, prefill", prefill(fox), "\n", "exact: " + fox + "\n"},

	// Echoing hosts.
	{"echo of one word", echoing("very"), "very good", "whole: very good"},
	{"echo of a tail", echoing(story), story[60:] + ".", "overlap: " + story + "."},
	{"no echo", echoing(story), "place.", "exact: " + story + "place."},
	{"echo and nothing", echoing(story), story, "whole: " + story},
}

func TestSeam(t *testing.T) {
	for _, c := range seamCases {
		t.Run(c.name, func(t *testing.T) {
			if got := outcome(c.c, c.text, run(c.c, c.text)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
