// The official OpenAI SDK: its raw iterator and its .stream() helper.
import OpenAI from 'openai';
import OpenAI4 from 'openai-4';
import OpenAI5 from 'openai-5';
import OpenAI7 from 'openai-7';
import { call, join } from './message.mjs';

const open = (SDK, job) => new SDK({ apiKey: 'sk-e2e', baseURL: `${job.base}/v1`, defaultHeaders: job.headers });

function request(job) {
  const r = {
    model: job.model,
    messages: [{ role: 'user', content: job.prompt }],
    max_completion_tokens: job.maxTokens,
    stream_options: { include_usage: true },
  };
  if (job.tools) {
    r.tools = job.tools.map((t) => ({ type: 'function', function: { name: t.name, description: t.description, parameters: t.schema } }));
  }
  if (job.schema) {
    r.response_format = { type: 'json_schema', json_schema: { name: 'report', schema: job.schema } };
  }
  return r;
}

const iterate = (SDK) => async (job, into) => {
  const stream = await open(SDK, job).chat.completions.create({ ...request(job), stream: true });
  const ids = new Set();
  for await (const chunk of stream) {
    if (chunk.id) ids.add(chunk.id);
    into.starts = ids.size;
    if (chunk.usage) into.usages++;
    for (const { delta, finish_reason } of chunk.choices) {
      into.text += delta.content ?? '';
      into.reasoning += delta.reasoning_content ?? '';
      for (const t of delta.tool_calls ?? []) {
        const c = (into.calls[t.index] ??= call('', '', ''));
        c.id += t.id ?? '';
        c.name += t.function?.name ?? '';
        c.args += t.function?.arguments ?? '';
      }
      into.finish = join(into.finish, finish_reason);
    }
  }
};

const helper = (SDK) => async (job, into) => {
  const client = open(SDK, job);
  const chat = client.chat.completions.stream ? client.chat.completions : client.beta.chat.completions;
  const stream = chat.stream(request(job));
  stream.on('content', (delta) => { into.text += delta; });
  const whole = await stream.finalChatCompletion();
  const { message, finish_reason } = whole.choices[0];
  into.text = message.content ?? '';
  into.calls = (message.tool_calls ?? []).map((t) => call(t.id, t.function.name, t.function.arguments));
  into.finish = finish_reason;
  into.starts = 1;
  into.usages = whole.usage ? 1 : 0;
};

export const clients = {
  'openai 7 iterator': iterate(OpenAI7),
  'openai 7 .stream()': helper(OpenAI7),
  'openai 6 iterator': iterate(OpenAI),
  'openai 6 .stream()': helper(OpenAI),
  'openai 5 iterator': iterate(OpenAI5),
  'openai 5 .stream()': helper(OpenAI5),
  'openai 4 iterator': iterate(OpenAI4),
  'openai 4 .stream()': helper(OpenAI4),
};
