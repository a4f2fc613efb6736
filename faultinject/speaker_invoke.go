package faultinject

import "fmt"

// invokeSpeaker plays Bedrock's InvokeModel of Anthropic's models.
type invokeSpeaker struct{}

func (invokeSpeaker) dialect() Dialect { return Invoke }

func (invokeSpeaker) traits() traits {
	return bedrockTraits(traits{responseID: invokePrefix, deltaEvent: "chunk"})
}

func (invokeSpeaker) serves(method, path string) bool {
	return bedrockServes(method, path, "invoke", "invoke-with-response-stream")
}

func (invokeSpeaker) prompt(_ *Server, in received) (Prompt, error) {
	call := readBedrockPath(in.path)
	w, r := readInvoke(call, in.body)
	if r != nil {
		return Prompt{Dialect: Invoke, Model: call.model}, r
	}
	return readPrompt(Invoke, w)
}

func (invokeSpeaker) check(_ *Server, in received) *Refusal {
	return checkInvoke(in.header, readBedrockPath(in.path), in.body)
}

func (invokeSpeaker) prefills(Host, Prompt) bool          { return true }
func (invokeSpeaker) events(a Answer, o Options) []Event  { return invokeEvents(a, o) }
func (invokeSpeaker) whole(a Answer, o Options) []byte    { return invokeWhole(a, o) }
func (invokeSpeaker) refuse(r *Refusal, id string) []byte { return bedrockRefuse(r, id) }
func (invokeSpeaker) failure(k errorKind) *Refusal        { return bedrockFailure(k) }

// inBand is an exception, or, as shape "chunk", the model's own error event.
func (invokeSpeaker) inBand(f InBand, k errorKind, p Position, _ []byte) []byte {
	if f.Shape == "chunk" {
		return chunkFrame(fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s}}`, quote(k.messages), quote(k.text)), pad(p.Options, p.Event))
	}
	return bedrockInBand(f, k)
}
