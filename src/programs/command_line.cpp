#include "programs/command_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <new>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "programs/console.h"
#include "programs/terminal.h"
#include "programs/version.h"

namespace stagecraft {
namespace {

constexpr int kBadInput = 1;
constexpr int kBadCommandLine = 2;

// One line (which a terminal may break between words), whatever is in the message: a path may hold
// a newline, an argument broken UTF-8.
void print_error(const char* message) {
  print_message(fmt::format("stagecraft: {}", printable(message, 4096)));
}

std::string where_it_is_said(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return fmt::format("; 'stagecraft {}--help' lists what there is",
                     commands.empty() ? "" : commands.front()->get_name() + " ");
}

// What is on the command line and nobody asked for.
std::string unexpected_argument(const CLI::App& app) {
  const std::vector<std::string> extra = app.remaining(true);
  const std::string first = extra.empty() ? "" : extra.front();
  const bool option = first.starts_with('-');
  return fmt::format("unexpected {} '{}'{}",
                     option ? "option" : (app.get_subcommands().empty() ? "command" : "argument"),
                     first, where_it_is_said(app));
}

// The command that is asked for; all of them where it is none of these, for --help and for errors.
// To add the options of all takes 6% of the time in which story656k tells its first word.
void add_commands(CLI::App& app, std::span<const Command> commands, std::string_view asked_for) {
  const bool known = std::ranges::find(commands, asked_for, &Command::name) != commands.end();
  for (const Command& command : commands)
    if (!known || command.name == asked_for) command.add(app);
}

// If this program was started without stdin, stdout or stderr (`>&-`), the next file that it opened
// would take that place, and what is printed would be written into it. So these three are taken:
// what is read from or written to them fails as before.
void keep_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int taken =
        ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int run(int argc, char** argv, std::span<const Command> commands) {
  CLI::App app("A language model engine small enough to read.", "stagecraft");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(0, 1);  // none at all is told below, in our own words
  add_commands(app, commands, argc > 1 ? argv[1] : "");
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // a command that ran, and answers with a code of its own
  } catch (const CLI::ExtrasError&) {
    print_error(unexpected_argument(app).c_str());
    return kBadCommandLine;
  } catch (const CLI::RequiredError& error) {
    print_error((error.what() + where_it_is_said(app)).c_str());
    return kBadCommandLine;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(error, text, text);
      print_now(fitted_help(text.str(), is_terminal(stdout) ? Terminal::of_stdout().width : 0));
      return 0;
    }
    print_error(error.what());
    return kBadCommandLine;
  }
  if (app.get_subcommands().empty()) {
    print_error("expected a command; 'stagecraft --help' lists them");
    return kBadCommandLine;
  }
  return 0;
}

}  // namespace

int run_command_line(int argc, char** argv, std::span<const Command> commands) {
  keep_standard_descriptors();
  try {
    const int code = run(argc, argv, commands);
    flush_stdout();
    return code;
  } catch (const std::bad_alloc&) {
    print_error("not enough memory");
  } catch (const std::system_error& error) {  // fmt::print's, if stdout cannot be written
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
