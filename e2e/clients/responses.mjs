// The official OpenAI SDK's Responses: its raw iterator and its .stream() helper.
import OpenAI from 'openai';
import OpenAI7 from 'openai-7';
import { call, join } from './message.mjs';

const open = (SDK, job) => new SDK({ apiKey: 'sk-e2e', baseURL: `${job.base}/v1`, defaultHeaders: job.headers });

function request(job) {
  const r = { model: job.model, input: job.prompt, max_output_tokens: job.maxTokens };
  if (job.tools) r.tools = job.tools.map((t) => ({ type: 'function', name: t.name, description: t.description, parameters: t.schema, strict: true }));
  if (job.schema) r.text = { format: { type: 'json_schema', name: 'report', schema: job.schema } };
  if (job.thinking) r.reasoning = { effort: 'low', summary: 'auto' };
  return r;
}

const iterate = (SDK) => async (job, into) => {
  const stream = await open(SDK, job).responses.create({ ...request(job), stream: true });
  const of = {};
  for await (const event of stream) {
    switch (event.type) {
      case 'response.created':
        into.starts++;
        break;
      case 'response.output_item.added':
        if (event.item.type === 'function_call') {
          of[event.output_index] = call(event.item.call_id, event.item.name, '');
          into.calls.push(of[event.output_index]);
        }
        break;
      case 'response.output_text.delta':
        into.text += event.delta;
        break;
      case 'response.reasoning_summary_text.delta':
        into.reasoning += event.delta;
        break;
      case 'response.function_call_arguments.delta':
        of[event.output_index].args += event.delta;
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        into.finish = join(into.finish, event.response.status);
        if (event.response.usage) into.usages++;
    }
  }
};

const helper = (SDK) => async (job, into) => {
  const stream = open(SDK, job).responses.stream(request(job));
  stream.on('response.output_text.delta', (event) => { into.text += event.delta; });
  const whole = await stream.finalResponse();
  const of = (type) => whole.output.filter((item) => item.type === type);
  into.text = whole.output_text;
  into.reasoning = of('reasoning').flatMap((item) => item.summary).map((part) => part.text).join('');
  into.calls = of('function_call').map((item) => call(item.call_id, item.name, item.arguments));
  into.finish = whole.status ?? '';
  into.starts = 1;
  into.usages = whole.usage ? 1 : 0;
};

export const clients = {
  'openai 7 responses iterator': iterate(OpenAI7),
  'openai 7 responses .stream()': helper(OpenAI7),
  'openai 6 responses iterator': iterate(OpenAI),
  'openai 6 responses .stream()': helper(OpenAI),
};
