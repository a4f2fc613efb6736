// Runs jobs for the tests in Go: one JSON object a line on standard input, one
// reply a line on standard output, in any order; many run at once.
//
//   { id, client, base, headers, model, prompt, maxTokens, tools, schema, thinking }
//   { id, message: { text, reasoning, calls, finish, starts, usages }, failure: { type, status, kind, text } }
//
// A client is used as its own documentation does; only the base URL, the key and
// additional headers are set. Its message comes with a failure too: what was
// shown until then.
import { createInterface } from 'node:readline';
import { describe } from './message.mjs';
import { clients as agents } from './agents.mjs';
import { clients as anthropic } from './anthropic.mjs';
import { clients as bedrock } from './bedrock.mjs';
import { clients as google } from './google.mjs';
import { clients as langchain } from './langchain.mjs';
import { clients as openai } from './openai.mjs';
import { clients as responses } from './responses.mjs';
import { clients as vercel } from './vercel.mjs';

const clients = { ...openai, ...responses, ...agents, ...anthropic, ...bedrock, ...google, ...vercel, ...langchain };
const write = process.stdout.write.bind(process.stdout);

// Libraries that greet or warn on standard output must not break the protocol.
console.log = console.info = console.debug = console.warn = console.error;

// Some SDKs reject promises that nobody took, besides the one that is awaited.
process.on('unhandledRejection', () => {});

async function run(job) {
  const into = { text: '', reasoning: '', calls: [], finish: '', starts: 0, usages: 0 };
  try {
    const client = clients[job.client];
    if (!client) throw new Error(`no client is named ${job.client}`);
    await client(job, into);
    return { id: job.id, message: into };
  } catch (err) {
    return { id: job.id, message: into, failure: describe(err) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  run(job).then((reply) => write(JSON.stringify(reply) + '\n'));
}
