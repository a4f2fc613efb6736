// The official Google Gen AI SDK.
import { GoogleGenAI } from '@google/genai';
import { GoogleGenAI as GoogleGenAI2 } from 'genai-2';
import { call, join } from './message.mjs';

function config(job) {
  const c = { maxOutputTokens: job.maxTokens };
  if (job.tools) {
    c.tools = [{ functionDeclarations: job.tools.map((t) => ({ name: t.name, description: t.description, parametersJsonSchema: t.schema })) }];
  }
  if (job.schema) {
    c.responseMimeType = 'application/json';
    c.responseJsonSchema = job.schema;
  }
  if (job.thinking) c.thinkingConfig = { includeThoughts: true };
  return c;
}

const iterate = (SDK) => async (job, into) => {
  const ai = new SDK({ apiKey: 'e2e', httpOptions: { baseUrl: job.base, headers: job.headers } });
  const ids = new Set();
  for await (const chunk of await ai.models.generateContentStream({ model: job.model, contents: job.prompt, config: config(job) })) {
    if (chunk.responseId) ids.add(chunk.responseId);
    into.starts = ids.size;
    for (const { content, finishReason } of chunk.candidates ?? []) {
      for (const p of content?.parts ?? []) {
        if (p.functionCall) into.calls.push(call(p.functionCall.id, p.functionCall.name, p.functionCall.args));
        else if (p.thought) into.reasoning += p.text ?? '';
        else into.text += p.text ?? '';
      }
      into.finish = join(into.finish, finishReason);
      // Usage is a running total; the one that counts is the finish's.
      if (finishReason && chunk.usageMetadata) into.usages++;
    }
  }
};

// ordinary hands over what generateContent returned, as it is.
const ordinary = (SDK) => async (job, into) => {
  const ai = new SDK({ apiKey: 'e2e', httpOptions: { baseUrl: job.base, headers: job.headers } });
  const answer = await ai.models.generateContent({ model: job.model, contents: job.prompt, config: config(job) });
  into.value = { ...answer, sdkHttpResponse: undefined, text: answer.text, functionCalls: answer.functionCalls };
};

export const clients = {
  'genai 3 generateContent': ordinary(GoogleGenAI),
  'genai 2 generateContent': ordinary(GoogleGenAI2),
  'genai 3': iterate(GoogleGenAI),
  'genai 2': iterate(GoogleGenAI2),
};
