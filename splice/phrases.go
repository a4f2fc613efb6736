package splice

// The words with which assistants introduce a continuation, normalised as talk.add does it: lower case, white space folded,
// straight apostrophes, no Markdown emphasis. Order does not matter.

// openers may stand alone on a line, or before a lead.
var openers = []string{
	"sure", "sure thing", "certainly", "of course", "absolutely", "okay", "ok", "got it", "understood", "right", "great",
	"apologies", "apologies for the interruption", "i apologize for the interruption", "sorry about that",
	"sorry for the interruption", "no problem",
	"natürlich", "gerne", "klar", "selbstverständlich", "bien sûr", "certainement", "d'accord",
	"claro", "por supuesto", "desde luego", "com certeza", "certo", "certamente", "natuurlijk", "zeker",
	"конечно", "хорошо", "好的", "当然", "好", "當然", "もちろんです", "はい", "承知しました", "물론입니다", "네", "알겠습니다",
}

// leads announce by themselves that the continuation follows.
var leads = []string{
	"here is the continuation", "here's the continuation", "here is a continuation", "here's a continuation",
	"here is the continued", "here's the continued", "here is the rest", "here's the rest", "here is the remainder",
	"here's the remainder", "here is the remaining", "here's the remaining", "here is the next part",
	"here's the next part", "here is the completed", "here's the completed", "here is the complete",
	"here's the complete", "here is the full", "here's the full", "here is my continuation",
	"continuing from", "continuing where", "continuing exactly",
	"i'll continue", "i will continue", "let me continue",
	"let's continue", "picking up where", "picking up from", "resuming from", "resuming where",
	"hier ist die fortsetzung", "hier ist der rest", "hier geht es weiter", "ich fahre fort", "ich mache weiter",

	"voici la suite", "voici la continuation", "je reprends", "suite de la réponse",
	"aquí está la continuación", "aquí tienes la continuación", "aquí está el resto",
	"aqui está a continuação", "aqui está o restante",
	"ecco la continuazione", "ecco il resto", "continuo da", "hier is het vervolg", "hier is de rest",
	"вот продолжение", "以下是续写", "以下是继续", "以下是剩余", "以下是後續",
	"続きです", "以下が続きです", "続きは以下の通りです", "이어서 작성하겠습니다", "계속하겠습니다",
}

// looseLeads announce it behind an opener only: alone they may begin a sentence of the answer.
var looseLeads = []string{
	"the continuation", "continuing", "continuation", "continued", "to continue", "fortsetzung", "je continue",
	"continúo", "continuación", "continuando", "continuação", "vervolg", "продолжаю", "продолжение", "继续", "繼續", "続き",
	"이어서", "계속",
}

// hints are beginnings that, behind an opener, no text of an answer in mid-course has: seen and not completed to a lead,
// they make the continuation one that talks instead of going on.
var hints = []string{
	"here is", "here's", "here are", "i'll", "i will", "let me", "let's", "continuing", "the continuation",
	"hier ist", "hier sind", "voici", "aquí", "aqui", "ecco", "hier is", "вот", "以下", "这是", "여기",
}
