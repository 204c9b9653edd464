#include <algorithm>
#include <chrono>
#include <csignal>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/usable_memory.h"
#include "base/utf8.h"
#include "checkpoint/find_model.h"
#include "checkpoint/model_source.h"
#include "generation/text_memory.h"
#include "model/plan_text.h"
#include "programs/chat_options.h"
#include "programs/console.h"
#include "programs/interrupt.h"
#include "programs/options.h"
#include "programs/students_code.h"
#include "serve/loopback.h"
#include "serve/service.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxKeyBytes = 4096;
constexpr double kMostOfMemory = 0.5;         // limit for the f32 weights of the glass box
constexpr std::size_t kMostOfRefusal = 1000;  // bytes
constexpr std::size_t kSpareClients = 64;  // clients without a text, such as those that are refused
constexpr std::chrono::seconds kGrace{10};  // for running answers when the server ends

struct ServeFlags : GenerationFlags {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  std::size_t parallel = 4;
  std::size_t queue = 64;
  std::vector<std::string> aliases;
  std::string api_key_file;
  std::string chat_template;
  std::string template_variables;
  std::string beside;  // the second model; empty: none
  bool verbose = false;

  std::size_t most_texts() const { return parallel + queue; }  // of a model
};

const HttpServer* served = nullptr;  // a signal handler can only reach globals

// The first line of the file. Only visible ASCII is allowed: a header loses the spaces around its
// value, and clients encode other characters in different ways.
std::string read_key(const std::string& file) {
  if (file.empty()) return {};
  const std::string text = read_text_file(file, kMaxKeyBytes, Pipes::Read);
  std::string key = text.substr(0, text.find_first_of("\r\n"));
  if (key.empty()) throw Error("{}: expected a key on the first line, found none", printable(file));
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] > 0x20 && key[i] < 0x7f) continue;
    throw Error(
        "{}: expected a key of visible ASCII characters, found byte 0x{:02x} at position {}",
        printable(file), static_cast<unsigned char>(key[i]), i + 1);
  }
  return key;
}

// The names that clients may use for the model: the aliases, then the name given to --model (if it
// is no path), then the name of its folder or file. Answers contain the first one.
std::vector<std::string> names_of(const ServeFlags& flags, const ModelSource& model) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& given) {
    const std::string name = utf8_with_replacements(given);  // as clients see it
    if (std::ranges::count(names, name) == 0) names.push_back(name);
  };
  for (const std::string& alias : flags.aliases) add(alias);
  if (is_found_by_name(flags.model)) add(flags.model);
  add(model_name(model));
  return names;
}

ServedModel describe(const ServeFlags& flags, const ModelSource& source, const Engine& engine,
                     const Tokenizer& tokenizer) {
  ServedModel model;
  model.names = names_of(flags, source);
  model.tokenizer = &tokenizer;
  model.vocab_size = engine.plan().vocab_size;
  model.plan = plan_text(engine.plan());
  model.prompt_rule = engine.plan().prompt;
  model.context = flags.context_for(engine.plan());
  model.max_texts = std::min(model.max_texts, flags.most_texts());
  model.defaults = flags.text_options(engine.plan(), 0);
  model.has_max_tokens = flags.max_tokens != 0;
  if (flags.seed_option->count() > 0) model.seed = flags.seed;
  return model;
}

// Opens the engine of the glass box. Its weights are f32, whatever the type in the file. It uses
// one thread, because the texts that are being generated need the others.
Engine open_glass_box_engine(const ModelSource& source, const Plan& plan) {
  const double needed = sizeof(float) * static_cast<double>(matrix_elements(plan));
  const double memory = usable_memory();
  if (memory > 0.0 && needed > kMostOfMemory * memory) {
    throw Error("weights: expected at most {:.1f} GB as f32 (half of the memory), found {:.1f} GB",
                kMostOfMemory * memory * 1e-9, needed * 1e-9);
  }
  return Engine::open(source, {observed_backend(), 1});
}

void serve(const ServeFlags& flags, HttpServer& server, const InterruptGuard& guard,
           const std::string& name) {
  const bool is_v6 = flags.host.find(':') != std::string::npos;
  const bool all = is_any_address(flags.host);
  print_now(fmt::format(
      "serving {} at http://{}:{}\n"
      "open this address in a browser to chat and to see how each token is chosen\n{}",
      printable(name),
      all     ? "localhost"
      : is_v6 ? "[" + flags.host + "]"
              : flags.host,
      server.port(),
      all ? fmt::format("from other machines: http://ADDRESS:{}, with an address of this machine\n",
                        server.port())
          : ""));
  std::optional<std::chrono::steady_clock::time_point> end;
  server.run([&] {
    if (!guard.interrupted()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!end) {
      server.stop();
      end = now + kGrace;
      print_note(fmt::format("{}[stopping: answers that have begun get {} seconds]",
                             is_terminal(stderr) ? "\n" : "", kGrace.count()));
    }
    return now >= *end;
  });
}

// A template may use what this engine lacks. Then each chat would fail; the user should learn this
// when the server starts.
void note_useless_template(const ChatFormat& chat) {
  try {
    chat.text({{{"user", "Who?"}}});
  } catch (const Error& error) {
    print_note(
        fmt::format("note: the chat template refuses a short conversation, so chats will "
                    "fail: {}",
                    error.what()));
  }
}

// Everything that serves one model.
class ServedEngine {
 public:
  ServedEngine(const ServeFlags& flags, const ModelSource& source, Engine engine,
               const Service::Options& options)
      : flags_(flags),
        source_(source),
        tokenizer_(Tokenizer::open(flags.tokenizer_source(source))),
        engine_(std::move(engine)),
        model_(describe(flags, source, engine_, tokenizer_)),
        grammars_(tokenizer_),
        service_(model_, options) {
    flags.check_tokenizer(tokenizer_, source, engine_.plan());
    model_.grammars = &grammars_;
    check_memory(engine_, model_.context, flags.parallel);
    note_long_context(engine_.plan(), model_.context);
    try {
      chat_ = open_chat_format(source, tokenizer_, flags.chat_template, flags.template_variables);
      chat_->find_tool_form();
      note_useless_template(*chat_);
      model_.chat = &*chat_;
    } catch (const Error& error) {
      if (!flags.chat_template.empty() || !flags.template_variables.empty()) throw;
      model_.why_no_chat = error.what();
    }
  }

  // The threads that compute. They wake the server, so they must end before the server is
  // destroyed.
  struct Threads {
    Scheduler scheduler;
    GlassBox glass_box;
  };
  std::unique_ptr<Threads> start(HttpServer& server) {
    const auto wake = [&server] { server.wake(); };
    const Scheduler::Options options{flags_.parallel, model_.context, flags_.queue};
    std::unique_ptr<Threads> threads(
        new Threads{{engine_, tokenizer_, options, wake},
                    {[this] { return open_glass_box_engine(source_, engine_.plan()); }, tokenizer_,
                     model_.context, wake}});
    service_.use(server, threads->scheduler, threads->glass_box);
    return threads;
  }

  // The memory of its texts, if all of them have full contexts.
  double texts_bytes() const {
    return session_bytes(engine_.plan(), engine_.options(), model_.context, flags_.parallel);
  }

  Service& service() { return service_; }
  const std::string& name() const { return model_.names.front(); }

 private:
  const ServeFlags flags_;
  const ModelSource source_;
  Tokenizer tokenizer_;
  Engine engine_;
  ServedModel model_;
  TokenGrammars grammars_;
  std::optional<ChatFormat> chat_;
  Service service_;
};

// Opens the second model. If the program contains a student's functions, ours run this model.
std::unique_ptr<ServedEngine> open_beside(ServeFlags flags, Service::Options options) {
  if (flags.beside.empty()) return nullptr;
  if (flags.beside != flags.model)
    flags.tokenizer = flags.chat_template = flags.template_variables = {};
  flags.model = flags.beside;
  flags.aliases = {};
  const ModelSource source = find_model(flags.model, "");
  if (students_code == nullptr) {
    return std::make_unique<ServedEngine>(flags, source, flags.open_engine(source), options);
  }
  flags.aliases = {model_name(source) + " (ours)"};
  options.has_glass_box = false;  // it would run the student's functions
  Engine engine = Engine::open(source, {BackendKind::Cpu, flags.thread_count()});
  return std::make_unique<ServedEngine>(flags, source, std::move(engine), options);
}

// Throws Error if the texts of both models together need more memory than this process may use.
// (Each engine has checked its own texts.)
void check_memory_of_both(const ServedEngine& first, const ServedEngine& second) {
  const double memory = usable_memory();
  const double needed = first.texts_bytes() + second.texts_bytes();
  if (memory == 0.0 || needed <= memory) return;
  throw Error(
      "--beside: expected two models whose texts fit into {:.1f} GB of memory together, found "
      "{:.1f} GB; a smaller --context or --parallel needs less",
      memory * 1e-9, needed * 1e-9);
}

void run_serve(const ServeFlags& flags) {
  const std::string key = read_key(flags.api_key_file);
  const bool local = is_loopback(flags.host);
  const ModelSource source = find_model(flags.model, "chat");
  Service::Options service{.api_key = key, .only_local_names = local};
  if (flags.verbose) {
    service.on_refused = [](const ApiError& error) {
      print_note(fmt::format("{} {}", error.status(), printable(error.what(), kMostOfRefusal)));
    };
  }
  const std::unique_ptr<ServedEngine> beside = open_beside(flags, service);
  service.has_beside = beside != nullptr;
  ServedEngine first(flags, source, flags.open_engine(source), service);
  if (beside) check_memory_of_both(first, *beside);
  SideBySide both(first.service(), beside ? &beside->service() : nullptr);
  HttpServerOptions options;
  options.host = flags.host;
  options.port = flags.port;
  options.max_connections = (beside ? 2 : 1) * flags.most_texts() + kSpareClients;
  HttpServer server(options, both);
  served = &server;
  const InterruptGuard guard(InterruptGuard::kEndToo, [] { served->wake(); });
  std::signal(SIGPIPE, SIG_IGN);  // if a client is gone, only one send() must fail
  const auto threads = first.start(server);
  const auto threads_beside = beside ? beside->start(server) : nullptr;
  if (!local && key.empty()) {
    print_note(
        "note: anyone who can reach this address can use the model; --api-key-file sets a key");
  }
  serve(flags, server, guard, first.name());
}

}  // namespace

void add_serve(CLI::App& app) {
  CLI::App* command = app.add_subcommand("serve", "An OpenAI-compatible HTTP server");
  const auto flags = std::make_shared<ServeFlags>();
  flags->add_to(*command, "16 for a completion, for a chat the rest of the context",
                kDefaultContextText);
  command->add_option("--host", flags->host, "Listen on this address of the machine")
      ->check(not_empty("an address"))
      ->capture_default_str()
      ->type_name("ADDRESS");
  command->add_option("--port", flags->port, "Listen on this port; 0: on a free one")
      ->check(whole_in_range(0, 65535))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--parallel", flags->parallel, "Texts that are generated at the same time")
      ->check(whole_in_range(1, 256))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--queue", flags->queue, "Texts that may wait; more are refused")
      ->check(whole_in_range(0, 10'000))
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--alias", flags->aliases,
                   "Another name of the model for clients (may be given several times)")
      ->check(not_empty("a name"))
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--api-key-file", flags->api_key_file,
                   "Clients must send the key on the first line of this file")
      ->check(not_empty())
      ->type_name("FILE");
  command
      ->add_option("--chat-template", flags->chat_template,
                   "The format of a conversation, as for the command chat")
      ->check(not_empty("a name or a file"))
      ->type_name("NAME|FILE");
  add_template_variables_to(*command, flags->template_variables);
  command
      ->add_option("--beside", flags->beside,
                   "A second model: the page shows its answers beside those of the first")
      ->check(not_empty())
      ->type_name("PATH");
  command->add_flag("--verbose", flags->verbose, "Print why a request is refused");
  command->footer(
      "Sampling options apply to requests that do not set their own.\n"
      "Example: stagecraft serve --model models/chat --port 8080");
  command->callback([flags] { run_serve(*flags); });
}

}  // namespace stagecraft
