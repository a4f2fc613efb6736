// The OpenAI Agents SDK: one turn of a streamed run, which ends at its first tools.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents';
import OpenAI7 from 'openai-7';
import { call } from './message.mjs';

setTracingDisabled(true);

async function run(job, into) {
  const client = new OpenAI7({ apiKey: 'sk-e2e', baseURL: `${job.base}/v1`, defaultHeaders: job.headers });
  const agent = new Agent({
    name: 'e2e',
    model: job.model,
    modelSettings: { maxTokens: job.maxTokens, ...(job.thinking && { reasoning: { effort: 'low', summary: 'auto' } }) },
    toolUseBehavior: 'stop_on_first_tool',
    tools: (job.tools ?? []).map((t) => tool({ name: t.name, description: t.description, parameters: t.schema, strict: true, execute: () => 'sunny' })),
    ...(job.schema && { outputType: { type: 'json_schema', name: 'report', strict: true, schema: job.schema } }),
  });
  const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: client, useResponses: true }), tracingDisabled: true });
  const result = await runner.run(agent, job.prompt, { stream: true });
  for await (const event of result) {
    if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') into.text += event.data.delta;
  }
  await result.completed;
  read(result, into);
}

// read takes what the model said from the run's result, and that each call was run.
function read(result, into) {
  const output = result.rawResponses.flatMap((r) => r.output);
  const of = (type) => output.filter((item) => item.type === type);
  const ran = new Set(result.newItems.filter((item) => item.type === 'tool_call_output_item').map((item) => item.rawItem.callId));
  into.text = of('message').flatMap((item) => item.content).map((part) => part.text ?? '').join('');
  into.reasoning = of('reasoning').flatMap((item) => item.content).map((part) => part.text ?? '').join('');
  into.calls = of('function_call').map((item) => call(item.callId, ran.has(item.callId) ? item.name : `${item.name} (not run)`, item.arguments));
  into.finish = result.finalOutput === undefined ? '' : 'completed';
  into.starts = result.rawResponses.length;
  into.usages = result.rawResponses.filter((r) => r.usage.outputTokens > 0).length;
}

export const clients = { 'openai agents': run };
