package faultinject

// converseSpeaker plays Bedrock's Converse, of Claude and of other models.
type converseSpeaker struct{}

func (converseSpeaker) dialect() Dialect { return Converse }

func (converseSpeaker) traits() traits { return bedrockTraits(traits{deltaEvent: "contentBlockDelta"}) }

func (converseSpeaker) serves(method, path string) bool {
	return bedrockServes(method, path, "converse", "converse-stream")
}

func (converseSpeaker) prompt(_ *Server, in received) (Prompt, error) {
	call := readBedrockPath(in.path)
	w, err := readConverse(call, in.body)
	if err != nil {
		return Prompt{Dialect: Converse, Model: call.model}, err
	}
	return readPrompt(Converse, w.request())
}

func (converseSpeaker) check(_ *Server, in received) *Refusal {
	return checkConverse(in.header, readBedrockPath(in.path), in.body)
}

func (converseSpeaker) prefills(Host, Prompt) bool          { return true }
func (converseSpeaker) events(a Answer, o Options) []Event  { return converseEvents(a, o) }
func (converseSpeaker) whole(a Answer, o Options) []byte    { return converseWhole(a, o) }
func (converseSpeaker) refuse(r *Refusal, id string) []byte { return bedrockRefuse(r, id) }
func (converseSpeaker) failure(k errorKind) *Refusal        { return bedrockFailure(k) }
func (converseSpeaker) inBand(f InBand, k errorKind, _ Position, _ []byte) []byte {
	return bedrockInBand(f, k)
}
