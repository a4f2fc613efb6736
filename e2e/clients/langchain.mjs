// LangChain JS: what adding up the chunks of .stream() gives.
import { ChatAnthropic } from '@langchain/anthropic';
import { ChatGoogleGenerativeAI } from '@langchain/google-genai';
import { ChatOpenAI } from '@langchain/openai';
import { call } from './message.mjs';

const tools = (job) => (job.tools ?? []).map((t) => ({ type: 'function', function: { name: t.name, description: t.description, parameters: t.schema } }));

// LangChain tries six times, with seconds between; two are enough to see that it does.
const maxRetries = 1;

function openai(job) {
  const model = new ChatOpenAI({
    model: job.model, apiKey: 'sk-e2e', maxTokens: job.maxTokens, useResponsesApi: false, maxRetries,
    configuration: { baseURL: `${job.base}/v1`, defaultHeaders: job.headers },
  });
  const options = {};
  if (job.tools) options.tools = tools(job);
  if (job.schema) options.response_format = { type: 'json_schema', json_schema: { name: 'report', schema: job.schema } };
  return model.withConfig(options);
}

function responses(job) {
  const model = new ChatOpenAI({
    model: job.model, apiKey: 'sk-e2e', maxTokens: job.maxTokens, useResponsesApi: true, maxRetries,
    reasoning: job.thinking && { effort: 'low', summary: 'auto' },
    configuration: { baseURL: `${job.base}/v1`, defaultHeaders: job.headers },
  });
  const options = {};
  if (job.tools) options.tools = tools(job);
  if (job.schema) options.response_format = { type: 'json_schema', json_schema: { name: 'report', schema: job.schema } };
  return model.withConfig(options);
}

// openAPI is a schema in the dialect of responseSchema, which has no additionalProperties.
function openAPI({ additionalProperties, properties, ...rest }) {
  return properties ? { ...rest, properties: Object.fromEntries(Object.entries(properties).map(([name, s]) => [name, openAPI(s)])) } : rest;
}

function google(job) {
  const model = new ChatGoogleGenerativeAI({
    model: job.model, apiKey: 'e2e', baseUrl: job.base, customHeaders: job.headers, maxOutputTokens: job.maxTokens, maxRetries,
    thinkingConfig: job.thinking && { includeThoughts: true },
  });
  const options = {};
  if (job.tools) options.tools = tools(job);
  if (job.schema) options.responseSchema = openAPI(job.schema);
  return model.withConfig(options);
}

function anthropic(job) {
  const model = new ChatAnthropic({
    model: job.model, apiKey: 'sk-ant-e2e', anthropicApiUrl: job.base, maxTokens: job.maxTokens, maxRetries,
    thinking: job.thinking, clientOptions: { defaultHeaders: job.headers },
  });
  const options = {};
  if (job.tools) options.tools = tools(job);
  if (job.schema) options.outputConfig = { format: { type: 'json_schema', schema: job.schema } };
  return model.withConfig(options);
}

const stream = (model) => async (job, into) => {
  let whole;
  for await (const chunk of await model(job).stream([['human', job.prompt]])) {
    whole = whole ? whole.concat(chunk) : chunk;
    read(whole, into);
  }
};

function read(whole, into) {
  const of = (type) => whole.contentBlocks.filter((b) => b.type === type);
  into.text = of('text').map((b) => b.text).join('');
  into.reasoning = of('reasoning').map((b) => b.reasoning).join('');
  into.calls = (whole.tool_calls ?? []).map((t) => call(t.id, t.name, t.args));
  const meta = { ...whole.response_metadata, ...whole.additional_kwargs };
  into.finish = meta.finish_reason ?? meta.finishReason ?? meta.stop_reason ?? meta.status ?? '';
  into.starts = 1;
  into.usages = whole.usage_metadata ? 1 : 0;
}

export const clients = {
  'langchain openai': stream(openai),
  'langchain openai responses': stream(responses),
  'langchain google': stream(google),
  'langchain anthropic': stream(anthropic),
};
