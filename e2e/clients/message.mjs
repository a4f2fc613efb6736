// The common shape of what different clients return and throw.

// join adds a value that should come once, so that a second one shows.
export function join(had, value) {
  return value ? (had ? `${had}+${value}` : value) : had;
}

// call is a tool call; its arguments are given as the client hands them over.
export function call(id, name, args) {
  return { id: id ?? '', name: name ?? '', args: typeof args === 'string' ? args : JSON.stringify(args ?? null) };
}

// describe is what a caller can tell of an error.
export function describe(err) {
  if (err?.lastError) err = err.lastError; // Vercel's RetryError
  const body = err?.error?.error ?? err?.error ?? err?.data?.error ?? {};
  return {
    type: err?.constructor?.name ?? typeof err,
    status: err?.status ?? err?.statusCode ?? 0,
    kind: String(body.type ?? err?.type ?? ''),
    text: String(err?.message ?? err),
  };
}
