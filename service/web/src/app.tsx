import { address } from "./api/client";
import { Empty } from "./components/basics";
import { SandboxBadge } from "./components/SandboxBadge";
import { SearchListPage } from "./pages/SearchListPage";
import { SearchPage } from "./pages/SearchPage";
import { links, type Route, route } from "./router";

export function App() {
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to content
      </a>
      <header class="top">
        <div class="wide">
          <a class="brand" href={links.list}>
            <Logo /> vpo-search
          </a>
          <nav aria-label="Main">
            <a href={links.list} aria-current={route.value.page === "list" ? "page" : undefined}>
              Searches
            </a>
            <a href={address("docs")}>API</a>
          </nav>
          <SandboxBadge />
        </div>
      </header>
      <main id="main" class="wide" tabIndex={-1}>
        <Page route={route.value} />
      </main>
    </>
  );
}

/** The address belongs to the router, so the link moves the focus itself. */
function skip(event: Event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "list":
      return <SearchListPage />;
    case "search":
      return <SearchPage key={route.id} id={route.id} run={route.run} />;
    case "unknown":
      return (
        <Empty title="There is no such page">
          <p>
            Nothing is at <code>{route.path}</code>. <a href={links.list}>All searches</a>
          </p>
        </Empty>
      );
  }
}

function Logo() {
  return (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <path class="logo-line" d="M4 25h7v-8h7v-6h8" />
      <circle class="logo-dot" cx="26" cy="11" r="3.4" />
    </svg>
  );
}
