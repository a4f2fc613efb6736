// Package eventstream is the framing of application/vnd.amazon.eventstream, in which AWS Bedrock streams: bytes to
// frames and back.
//
// Law: the framing keeps every byte. The Raw bytes of all frames plus the unfinished ones are exactly the input, so that
// what nobody needs to change passes unchanged. What does not check (a length, a CRC) is an error that ends the stream
// for good: behind it no frame boundary can be trusted. The scanner never says "end"; at the end of input it tells how
// many bytes of an unfinished frame are in hand.
//
//	offset    size    field                            limits
//	0         4       total length, all of the frame   16 bytes to Scanner.Limit
//	4         4       length of the headers            at most total - 16
//	8         4       CRC-32 (IEEE) of the 8 above     checked before anything is waited for
//	12        …       headers
//	…         …       payload
//	total-4   4       CRC-32 of everything above
//
//	header    u8 length, name; u8 type; value: 0 true, 1 false, 2 byte, 3 u16, 4 u32, 5 u64, 6 bytes and 7 string
//	          (u16 length in front), 8 timestamp (8 bytes), 9 uuid (16 bytes). All integers are big-endian.
//
// The headers that matter are strings: ":message-type" is event, exception or error; the name of a frame is its
// ":event-type", ":exception-type" or ":error-code". Sources: WIRE 1.6; smithy.io/2.0/aws/amazon-eventstream.html.
//
// Standard library and sse (whose Event is the house's unit) only; no allocation per frame in steady state.
package eventstream
