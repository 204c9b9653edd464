#pragma once

// CLI11's header would take seconds to compile.
namespace CLI {
class App;
}

namespace stagecraft {

// Each function adds one subcommand: its options, its help, and a callback that does the work. A
// callback throws Error if its input is wrong. To end with another exit code, it throws
// CLI::RuntimeError(code).
void add_bench(CLI::App& app);
void add_chat(CLI::App& app);
void add_convert(CLI::App& app);
void add_info(CLI::App& app);
void add_peek(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_serve(CLI::App& app);
void add_story(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_compare(CLI::App& app);
void add_trace(CLI::App& app);

}  // namespace stagecraft
