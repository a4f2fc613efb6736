// AWS's SDK for JavaScript, with a Bedrock API key. It sends keys to https only, so
// that its requests are handed to plain HTTP here; they are otherwise its own.
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand, InvokeModelWithResponseStreamCommand } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { call, join } from './message.mjs';

class Plainly extends NodeHttpHandler {
  handle(request, options) {
    request.protocol = 'http:';
    return super.handle(request, options);
  }
}

function open(job) {
  const client = new BedrockRuntimeClient({
    region: 'us-east-1',
    endpoint: job.base.replace('http:', 'https:'),
    token: { token: 'key' },
    authSchemePreference: ['httpBearerAuth'],
    requestHandler: new Plainly(),
  });
  client.middlewareStack.add((next) => (args) => {
    Object.assign(args.request.headers, job.headers);
    return next(args);
  }, { step: 'build' });
  return client;
}

function request(job) {
  const r = {
    modelId: job.model,
    messages: [{ role: 'user', content: [{ text: job.prompt }] }],
    inferenceConfig: { maxTokens: job.maxTokens },
  };
  if (job.tools) {
    r.toolConfig = { tools: job.tools.map((t) => ({ toolSpec: { name: t.name, description: t.description, inputSchema: { json: t.schema } } })) };
  }
  if (job.schema) {
    r.outputConfig = { textFormat: { type: 'json_schema', structure: { jsonSchema: { name: 'report', schema: JSON.stringify(job.schema) } } } };
  }
  if (job.thinking) r.additionalModelRequestFields = { thinking: job.thinking };
  return r;
}

async function converse(job, into) {
  const { stream } = await open(job).send(new ConverseStreamCommand(request(job)));
  const of = {};
  for await (const e of stream) {
    if (e.messageStart) into.starts++;
    const use = e.contentBlockStart?.start?.toolUse;
    if (use) {
      of[e.contentBlockStart.contentBlockIndex] = into.calls.length;
      into.calls.push(call(use.toolUseId, use.name, ''));
    }
    const delta = e.contentBlockDelta?.delta ?? {};
    into.text += delta.text ?? '';
    into.reasoning += delta.reasoningContent?.text ?? '';
    if (delta.toolUse) into.calls[of[e.contentBlockDelta.contentBlockIndex]].args += delta.toolUse.input;
    into.finish = join(into.finish, e.messageStop?.stopReason);
    if (e.metadata) into.usages++;
  }
}

// invoke reads the model's own events, which come as they are.
async function invoke(job, into) {
  const body = { anthropic_version: 'bedrock-2023-05-31', max_tokens: job.maxTokens, messages: [{ role: 'user', content: job.prompt }] };
  if (job.tools) body.tools = job.tools.map((t) => ({ name: t.name, description: t.description, input_schema: t.schema }));
  if (job.schema) body.output_config = { format: { type: 'json_schema', schema: job.schema } };
  if (job.thinking) body.thinking = job.thinking;
  const answer = await open(job).send(new InvokeModelWithResponseStreamCommand({ modelId: job.model, body: JSON.stringify(body) }));
  const of = {};
  for await (const { chunk } of answer.body) {
    if (!chunk) continue;
    const e = JSON.parse(new TextDecoder().decode(chunk.bytes));
    if (e.type === 'message_start') into.starts++;
    if (e.content_block?.type === 'tool_use') {
      of[e.index] = into.calls.length;
      into.calls.push(call(e.content_block.id, e.content_block.name, ''));
    }
    into.text += (e.content_block?.text ?? '') + (e.delta?.text ?? '');
    into.reasoning += e.delta?.thinking ?? '';
    if (e.delta?.partial_json) into.calls[of[e.index]].args += e.delta.partial_json;
    if (e.type === 'message_delta') {
      into.finish = join(into.finish, e.delta.stop_reason);
      into.usages++;
    }
  }
}

// ordinary hands over what Converse returned, as it is.
async function ordinary(job, into) {
  const { $metadata, ...answer } = await open(job).send(new ConverseCommand(request(job)));
  into.value = answer;
}

export const clients = {
  'aws 3 ConverseStream': converse,
  'aws 3 InvokeModelWithResponseStream': invoke,
  'aws 3 Converse': ordinary,
};
