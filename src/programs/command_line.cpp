#include "programs/command_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "programs/console.h"
#include "programs/interrupt.h"
#include "programs/terminal.h"
#include "programs/version.h"

namespace stagecraft {
namespace {

constexpr int kBadInput = 1;
constexpr int kBadCommandLine = 2;

// The script ./stage sets STAGECRAFT_HOME and runs this program.
bool runs_in_stage() {
  const char* home = std::getenv("STAGECRAFT_HOME");
  return home != nullptr && *home != '\0';
}

// What the user typed to start this program.
const char* typed_name() { return runs_in_stage() ? "./stage" : "stagecraft"; }

// `help` with the examples as the user would type them.
std::string with_typed_name(std::string help) {
  constexpr std::string_view kName = "stagecraft ";
  const std::string typed = fmt::format("{} ", typed_name());
  for (std::size_t at = 0; (at = help.find(kName, at)) != std::string::npos; at += typed.size()) {
    help.replace(at, kName.size(), typed);
  }
  return help;
}

// The help about the options of a command that ./stage handles before it runs this program.
std::string_view help_of_stage(std::string_view command) {
  if (!runs_in_stage()) return "";
  if (command == "bench") {
    return "\nOptions of ./stage, each with a --help of its own:\n"
           "  --mine 9                    The speed of your stage 9; 0-10: of a model with your "
           "stages\n"
           "  --against llama-bench --model FILE.gguf\n"
           "                              The speed beside that of llama.cpp, or of another "
           "program\n";
  }
  constexpr std::string_view kRunStages[] = {"story", "chat", "serve", "trace", "peek"};
  if (std::ranges::find(kRunStages, command) == std::end(kRunStages)) return "";
  return "\nAn option of ./stage:\n"
         "  --mine 0-3                  Run your functions of stages 0 to 3; just --mine: of all "
         "that "
         "pass\n";
}

// The help as users read it: 'TEXT="Once upon a time"', and what excludes an option after what it
// does. (CLI11 writes 'TEXT=Once upon a time Excludes: --ids', and 'N=[512]' for a list.)
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string text = " " + option->get_type_name();
    std::string value = option->get_default_str();
    if (value.starts_with('[')) value = value.substr(1, value.size() - 2);  // of a list
    const bool is_one_word = value.find(' ') == std::string::npos;
    if (!value.empty()) text += is_one_word ? "=" + value : fmt::format("=\"{}\"", value);
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    return text;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::vector<std::string> excluded;
    for (const CLI::Option* other : option->get_excludes()) excluded.push_back(other->get_name());
    return option->get_description() + (option->get_required() ? " (required)" : "") +
           (excluded.empty() ? "" : fmt::format(" (not with {})", fmt::join(excluded, ", ")));
  }
};

std::string where_it_is_said(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return fmt::format("; see '{} {}--help'", typed_name(),
                     commands.empty() ? "" : commands.front()->get_name() + " ");
}

// The message about an argument that no option or command takes.
std::string unexpected_argument(const CLI::App& app) {
  const std::vector<std::string> extra = app.remaining(true);
  const std::string first = extra.empty() ? "" : extra.front();
  const bool option = first.starts_with('-');
  return fmt::format("unexpected {} '{}'{}",
                     option ? "option" : (app.get_subcommands().empty() ? "command" : "argument"),
                     first, where_it_is_said(app));
}

// CLI11's messages, in the words of all others. "--top-k: 1 required K missing" becomes "--top-k:
// expected a value (K), found none".
std::string message_of(const CLI::ArgumentMismatch& error) {
  constexpr std::string_view kRequired = ": 1 required ", kMissing = " missing";
  const std::string_view text = error.what();
  const std::size_t at = text.find(kRequired);
  if (at != std::string_view::npos && text.ends_with(kMissing)) {
    std::string_view type = text.substr(at + kRequired.size());
    type.remove_suffix(kMissing.size());
    return fmt::format("{}: expected a value ({}), found none", text.substr(0, at), type);
  }
  const std::size_t received = text.find(": At Most 1 required but received ");
  if (received == std::string_view::npos) return std::string(text);
  return fmt::format("{}: expected one value, found {}", text.substr(0, received),
                     text.substr(text.rfind(' ') + 1));
}

// "--ids: expected no --prompt beside it, found both" for "--ids excludes --prompt".
std::string message_of(const CLI::ExcludesError& error) {
  constexpr std::string_view kExcludes = " excludes ";
  const std::string_view text = error.what();
  const std::size_t at = text.find(kExcludes);
  if (at == std::string_view::npos) return std::string(text);
  return fmt::format("{}: expected no {} beside it, found both", text.substr(0, at),
                     text.substr(at + kExcludes.size()));
}

// "--print-ids: expected no value, found 'maybe'" for "Could not convert: --print-ids = maybe". All
// options with a value check it themselves.
std::string message_of(const CLI::ConversionError& error) {
  constexpr std::string_view kBegin = "Could not convert: ", kIs = " = ";
  const std::string_view text = error.what();
  const std::size_t at = text.find(kIs);
  if (!text.starts_with(kBegin) || at == std::string_view::npos) return std::string(text);
  return fmt::format("{}: expected no value, found '{}'",
                     text.substr(kBegin.size(), at - kBegin.size()), text.substr(at + kIs.size()));
}

// If an option with one value is given several times, the last one holds, so that a user can add an
// option to the command of a script or of an alias. A text without an option's name is different:
// who gives two of them has forgotten the quotes.
void let_the_last_value_hold(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const bool one_value = option->get_items_expected_max() == 1;
    if (one_value && !option->get_positional()) option->take_last();
  }
}

// `help`: --help. `help COMMAND`: COMMAND --help. `help` of an unknown command: only its name,
// which is an error.
std::vector<std::string> with_help_as_option(std::vector<std::string> arguments,
                                             std::span<const Command> commands) {
  if (arguments.empty() || arguments.front() != "help" || arguments.size() > 2) return arguments;
  arguments.erase(arguments.begin());
  const bool known = arguments.empty() ||
                     std::ranges::find(commands, arguments[0], &Command::name) != commands.end();
  if (known) arguments.emplace_back("--help");
  return arguments;
}

// Adds the command that the user asked for. If its name is unknown, adds all commands, for --help
// and for error messages. Adding the options of all commands would take 6% of the time that
// story656k needs to its first word.
void add_commands(CLI::App& app, std::span<const Command> commands, std::string_view asked_for) {
  const bool known = std::ranges::find(commands, asked_for, &Command::name) != commands.end();
  for (const Command& command : commands)
    if (!known || command.name == asked_for) command.add(app);
  for (CLI::App* command : app.get_subcommands({})) let_the_last_value_hold(*command);
}

// CLI11 would take the next argument as the value of "--name=". So the empty value becomes an
// argument of its own, and the option says what it expects.
void split_empty_values(std::vector<std::string>& arguments, const CLI::App& app) {
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  const auto end = std::ranges::find(arguments, "--");
  std::vector<std::string> result;
  for (auto argument = arguments.begin(); argument != end; ++argument) {
    const std::string name = argument->substr(0, argument->find('='));
    const bool takes_a_value = std::ranges::any_of(commands, [&](const CLI::App* command) {
      const CLI::Option* option = command->get_option_no_throw(name);
      return option != nullptr && option->get_type_size() != 0;
    });
    const bool is_empty = name.starts_with("--") && *argument == name + "=";
    result.push_back(is_empty && takes_a_value ? name : *argument);
    if (is_empty && takes_a_value) result.emplace_back();
  }
  result.insert(result.end(), end, arguments.end());
  arguments = std::move(result);
}

// If this program was started without stdin, stdout or stderr (`>&-`), the next file that it opens
// would get that descriptor, and printed text would be written into that file. So /dev/null takes
// the free descriptors. It is opened so that reading or writing still fails.
void keep_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int taken =
        ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int run(int argc, char** argv, std::span<const Command> commands) {
  CLI::App app("A language model engine, and the course in which you write it", typed_name());
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", version_text());
  app.require_subcommand(0, 1);  // no command: see the message below
  std::vector<std::string> arguments =
      with_help_as_option({argv + std::min(argc, 1), argv + argc}, commands);
  const std::string asked_for = arguments.empty() ? "" : arguments.front();
  add_commands(app, commands, asked_for);
  split_empty_values(arguments, app);
  const auto refuse = [](const std::string& problem) {
    print_error(problem);
    return kBadCommandLine;
  };
  try {
    std::ranges::reverse(arguments);  // as CLI11 expects them
    app.parse(std::move(arguments));
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // the command ran and chose its own exit code
  } catch (const CLI::ExtrasError&) {
    return refuse(unexpected_argument(app));
  } catch (const CLI::RequiredError& error) {
    return refuse(error.what() + where_it_is_said(app));
  } catch (const CLI::ArgumentMismatch& error) {
    return refuse(message_of(error));
  } catch (const CLI::ExcludesError& error) {
    return refuse(message_of(error));
  } catch (const CLI::ConversionError& error) {
    return refuse(message_of(error));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream out;
      app.exit(error, out, out);
      std::string text = out.str();
      if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) {
        text = with_typed_name(std::move(text));
        text += help_of_stage(asked_for);
      }
      print_now(fitted_help(text, is_terminal(stdout) ? Terminal::of_stdout().width : 0));
      return 0;
    }
    return refuse(error.what());
  }
  if (app.get_subcommands().empty()) {
    return refuse(fmt::format("expected a command; '{} --help' lists them", typed_name()));
  }
  return 0;
}

}  // namespace

int run_command_line(int argc, char** argv, std::span<const Command> commands) {
  keep_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows past `ulimit -f` is an error of write()
  try {
    const int code = run(argc, argv, commands);
    if (code == 0) flush_stdout();
    std::fflush(stdout);  // if it fails now, an error has been printed already
    return end_with(code);
  } catch (const std::bad_alloc&) {
    print_error("not enough memory");
  } catch (const std::system_error& error) {  // thrown by fmt::print if stdout cannot be written
    const std::string reason = error.code().message();
    print_error(std::ferror(stdout) == 0
                    ? error.what()
                    : fmt::format("stdout: cannot be written: {}", reason).c_str());
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return kBadInput;
}

}  // namespace stagecraft
