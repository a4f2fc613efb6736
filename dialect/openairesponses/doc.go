// Package openairesponses is the OpenAI Responses dialect: POST /v1/responses with "stream": true.
//
// Law: bytes in, bytes out. The package holds no state beyond one decoder's block numbers, decides nothing and never
// closes, completes or signs what the provider left unfinished: an unfinished call is never rendered runnable, and an
// unfinished reasoning item is closed only under a mark that a later request is cleaned of.
//
// # Items and blocks
//
// A response is a row of items; a message or reasoning item is a row of parts. A block is one part, or an item that has
// none. All blocks of one item carry the item's output_index as their Index, in the order of their parts; the first of
// them opens with the item, before the first part, because the index is used up by then. A message item whose first part
// turns out to be another kind than it opened as (a refusal) keeps that first block empty, and it is no part.
//
//	item                                          block                what closes it
//	message                                       Prose, Refusal       output_text.done / refusal.done, per part
//	reasoning                                     Reasoning            reasoning_summary_text.done, per part; output_item.done signs it
//	function_call                                 Call                 function_call_arguments.done
//	custom_tool_call                              CustomCall           custom_tool_call_input.done
//	local_shell_call, apply_patch_call, …         CustomCall           output_item.done; their input is in the item
//	web_search_call, mcp_call, …                  HostedResult         output_item.done; their result is in the item
//	shell_call in a container                     Hosted               output_item.done; a shell_call_output follows
//	any other                                     Unknown              output_item.done
//	a part of a message, of any other type        Unknown              content_part.done; it has the item's output_index
//
// An item opens and closes in several events. [turn.Block].Stage holds which of them the client has (the constants in
// stage.go), so that whoever goes on, in this process or another, renders each once. Done events repeat the text of
// their part: they are no text again, unless the host streamed none.
//
// A reasoning item is worth nothing before its output_item.done, which alone has the final encrypted_content. One whose
// parts are closed and which never got there is closed under the mark before anything follows it.
//
// # Numbers
//
// Every event has the next sequence_number. Writer methods advance said.Seq by what they render, whether or not it
// is folded afterwards; hosts that do not number (their first event shows it) get no numbers.
//
// Sources: WIRE 1.2, 1.7, 2, 3.3, 5; the Responses streaming reference (platform.openai.com/docs/api-reference/
// responses-streaming); the recordings under corpus/.
package openairesponses
