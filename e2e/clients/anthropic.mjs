// The official Anthropic SDK: its raw iterator and its .stream() helper.
import Anthropic from '@anthropic-ai/sdk';
import Anthropic0 from 'anthropic-0';
import { call, join } from './message.mjs';

const open = (SDK, job) => new SDK({ apiKey: 'sk-ant-e2e', baseURL: job.base, defaultHeaders: job.headers });

function request(job) {
  const r = { model: job.model, messages: [{ role: 'user', content: job.prompt }], max_tokens: job.maxTokens };
  if (job.tools) r.tools = job.tools.map((t) => ({ name: t.name, description: t.description, input_schema: t.schema }));
  if (job.schema) r.output_config = { format: { type: 'json_schema', schema: job.schema } };
  if (job.thinking) r.thinking = job.thinking;
  return r;
}

const iterate = (SDK) => async (job, into) => {
  const stream = await open(SDK, job).messages.create({ ...request(job), stream: true });
  const blocks = [];
  for await (const event of stream) {
    switch (event.type) {
      case 'message_start':
        into.starts++;
        break;
      case 'content_block_start':
        blocks[event.index] = event.content_block;
        into.text += event.content_block.text ?? '';
        if (event.content_block.type === 'tool_use') {
          blocks[event.index] = call(event.content_block.id, event.content_block.name, '');
          into.calls.push(blocks[event.index]);
        }
        break;
      case 'content_block_delta':
        into.text += event.delta.text ?? '';
        into.reasoning += event.delta.thinking ?? '';
        if (event.delta.type === 'input_json_delta') blocks[event.index].args += event.delta.partial_json;
        break;
      case 'message_delta':
        into.finish = join(into.finish, event.delta.stop_reason);
        if (event.usage) into.usages++;
    }
  }
};

const helper = (SDK) => async (job, into) => {
  const stream = open(SDK, job).messages.stream(request(job));
  stream.on('text', (delta) => { into.text += delta; });
  const message = await stream.finalMessage();
  const of = (type) => message.content.filter((b) => b.type === type);
  into.text = of('text').map((b) => b.text).join('');
  into.reasoning = of('thinking').map((b) => b.thinking).join('');
  into.calls = of('tool_use').map((b) => call(b.id, b.name, b.input));
  into.finish = message.stop_reason ?? '';
  into.starts = 1;
  into.usages = message.usage ? 1 : 0;
};

export const clients = {
  'anthropic 1 iterator': iterate(Anthropic),
  'anthropic 1 .stream()': helper(Anthropic),
  'anthropic 0.60 iterator': iterate(Anthropic0),
  'anthropic 0.60 .stream()': helper(Anthropic0),
};
