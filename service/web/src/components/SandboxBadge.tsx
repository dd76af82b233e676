import { useEffect } from "preact/hooks";
import { address } from "../api/client";
import type { Readiness, Tier } from "../api/types";
import { Resource } from "../state/resource";

const MEANING: Record<Tier, string> = {
  full: "Programs run in jails whose memory and processes are bounded together",
  jail: "Programs run in jails; no cgroup bounds a jail's memory as a whole",
  confined: "Programs are only confined: there are no namespaces around them",
  none: "No program can be run",
};
const PILL: Record<Tier, string> = { full: "done", jail: "done", confined: "waiting", none: "failed" };

/** How strongly programs are isolated here; nothing until the service has said so. */
export function SandboxBadge() {
  useEffect(() => {
    void readiness.refresh();
    return () => readiness.stop();
  }, []);
  const tier = readiness.data.value?.tier;
  if (!tier) return null;
  const advice = readiness.data.value?.checks.sandbox?.detail || "`vpo doctor` tells more";
  return (
    <span class={`pill pill-${PILL[tier]} sandbox-badge`} title={`${MEANING[tier]}. ${advice}`}>
      sandbox: {tier}
    </span>
  );
}

/** 503 is an answer too: it says what is missing. */
const readiness = new Resource<Readiness>(async (signal) => (await fetch(address("readyz"), { signal })).json());
