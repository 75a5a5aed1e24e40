import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { Failure, Skeleton } from "./ui/ui";

/** A component that is loaded when it is first shown. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let ready: ComponentType<P> | null = null;
  return (props: P) => {
    const got = useSignal<ComponentType<P> | null>(ready), failed = useSignal<unknown>(null);
    useEffect(() => {
      if (!ready) load().then((c) => (got.value = ready = c), (err: unknown) => (failed.value = err));
    }, []);
    const Part = got.value;
    if (failed.value) return <Failure error={failed.value} retry={() => location.reload()} />;
    return Part ? <Part {...props} /> : <Skeleton />;
  };
}
