// The proxy's answers. A token, if there is one, stays in this tab.
const kept = "unbroken.token";

export class Denied extends Error {}

export function keepToken(t) { sessionStorage.setItem(kept, t); }

export async function get(path) {
  const token = sessionStorage.getItem(kept);
  const giveUp = AbortSignal.timeout(8000);
  const r = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {}, signal: giveUp, cache: "no-store", redirect: "error" });
  if (r.status === 401) throw new Denied(token ? "That is not the token." : "");
  if (!r.ok) throw new Error(`${r.status} ${(await r.text()).slice(0, 200)}`);
  return r.json();
}
