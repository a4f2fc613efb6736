package main

import (
	"fmt"
	"io"
	"strings"
)

const exampleHead = `# yaml-language-server: $schema=` + schemaURL + `
#
# Every setting of unbroken, with its default.
#
# This file says what unbroken does without one. The name behind each comment is
# the environment variable; the flag is the key with dashes (--first-token).
# Precedence: this file < environment < flags. An unknown key is an error.
# unbroken check --config FILE says what is wrong with a file, and with --print
# what is in force and why. unbroken serve --config FILE takes changes while it serves;
# docs/CONFIG.md says which.
`

const exampleUpstreams = `#upstreams:
#  openai: https://api.openai.com
#  anthropic: https://api.anthropic.com
#  gemini: https://generativelanguage.googleapis.com
#  # Reachable as http://127.0.0.1:8790/u/local/v1; a mapping, where a URL is not enough.
#  local:
`

// exampleProvider shows each key of an upstream once.
var exampleProvider = map[string]string{
	"url": "http://127.0.0.1:8000/v1", "dialect": "chat", "engine": "vllm", "credential": "env:LOCAL_API_KEY",
	"credential_header": "Authorization", "host": "models.internal", "sni": "models.internal", "http1": "false", "upgrade": "false",
	"ca_file": "/etc/unbroken/ca.pem", "client_cert": "/etc/unbroken/client.pem", "client_key": "/etc/unbroken/client.key",
}

// writeExample writes the annotated file. Its keys are the table's.
func writeExample(to io.Writer) {
	io.WriteString(to, exampleHead)
	table := fields(&settings{}, nil)
	for i := range table {
		f := &table[i]
		if f.section != "" {
			fmt.Fprintf(to, "\n# --- %s ---\n", f.section)
		}
		fmt.Fprintln(to)
		for _, line := range wrap(f.doc+" ("+f.env()+")", 90) {
			fmt.Fprintf(to, "# %s\n", line)
		}
		switch {
		case f.key == keyUpstreams:
			io.WriteString(to, exampleUpstreams)
			var p provider
			for _, k := range p.fields(nil) {
				fmt.Fprintf(to, "#    # %s\n#    %s: %s\n", k.doc, k.key, exampleProvider[k.key])
			}
			io.WriteString(to, "#    # Added to every request; each is env:NAME, file:PATH or the value itself.\n#    headers:\n#      X-Team: agents\n")
		case f.key == keyRoutes:
			io.WriteString(to, exampleRoutes)
		case f.def == "":
			fmt.Fprintf(to, "#%s:\n", f.key)
		default:
			fmt.Fprintf(to, "%s: %s\n", f.key, f.def)
		}
	}
}

// wrap breaks a text into lines of at most width letters.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
