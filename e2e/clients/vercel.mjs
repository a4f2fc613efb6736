// The Vercel AI SDK, by the parts of its fullStream.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { createAnthropic as createAnthropic7 } from 'ai-7-anthropic';
import { createGoogle as createGoogle7 } from 'ai-7-google';
import { createOpenAI as createOpenAI7 } from 'ai-7-openai';
import { call, join } from './message.mjs';

const stream = (ai, model) => async (job, into) => {
  const { tool, jsonSchema, Output, streamText } = ai;
  const options = { model: model(job), prompt: job.prompt, maxOutputTokens: job.maxTokens, onError: () => {} };
  if (job.tools) {
    options.tools = Object.fromEntries(job.tools.map((t) => [t.name, tool({ description: t.description, inputSchema: jsonSchema(t.schema) })]));
  }
  if (job.schema) options.output = Output.object({ schema: jsonSchema(job.schema) });
  if (job.thinking) {
    options.providerOptions = {
      anthropic: { thinking: { type: job.thinking.type, budgetTokens: job.thinking.budget_tokens } },
      google: { thinkingConfig: { includeThoughts: true } },
      openai: { reasoningEffort: 'low', reasoningSummary: 'auto' },
    };
  }
  for await (const part of streamText(options).fullStream) {
    switch (part.type) {
      case 'start-step':
        into.starts++;
        break;
      case 'text-delta':
        into.text += part.text;
        break;
      case 'reasoning-delta':
        into.reasoning += part.text;
        break;
      case 'tool-call':
        into.calls.push(call(part.toolCallId, part.invalid ? `${part.toolName} (invalid)` : part.toolName, part.input));
        break;
      case 'finish-step':
        into.finish = join(into.finish, part.finishReason);
        into.usages += part.usage?.outputTokens ? 1 : 0;
        break;
      case 'error':
        throw part.error;
    }
  }
};

const openai = (create) => (job) => create({ apiKey: 'sk-e2e', baseURL: `${job.base}/v1`, headers: job.headers }).chat(job.model);
const responses = (create) => (job) => create({ apiKey: 'sk-e2e', baseURL: `${job.base}/v1`, headers: job.headers }).responses(job.model);
const google = (create) => (job) => create({ apiKey: 'e2e', baseURL: `${job.base}/v1beta`, headers: job.headers })(job.model);
const compatible = (job) => createOpenAICompatible({
  name: 'e2e', apiKey: 'sk-e2e', baseURL: `${job.base}/v1`, headers: job.headers, includeUsage: true, supportsStructuredOutputs: true,
})(job.model);
const anthropic = (create) => (job) => create({ apiKey: 'sk-ant-e2e', baseURL: `${job.base}/v1`, headers: job.headers })(job.model);

export const clients = {
  'vercel 6 openai': stream(ai6, openai(createOpenAI)),
  'vercel 6 openai-compatible': stream(ai6, compatible),
  'vercel 6 anthropic': stream(ai6, anthropic(createAnthropic)),
  'vercel 6 openai responses': stream(ai6, responses(createOpenAI)),
  'vercel 6 google': stream(ai6, google(createGoogleGenerativeAI)),
  'vercel 7 openai': stream(ai7, openai(createOpenAI7)),
  'vercel 7 anthropic': stream(ai7, anthropic(createAnthropic7)),
  'vercel 7 openai responses': stream(ai7, responses(createOpenAI7)),
  'vercel 7 google': stream(ai7, google(createGoogle7)),
};
