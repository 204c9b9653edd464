// The Python module: texts, tokens and arrays of Python on one side, the engine on the other.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <variant>

#include "base/error.h"
#include "base/json_text.h"
#include "base/processors.h"
#include "checkpoint/find_model.h"
#include "generation/common_prefix.h"
#include "generation/continuation.h"
#include "generation/conversation.h"
#include "generation/feed_tokens.h"
#include "generation/sampling_ranges.h"
#include "generation/session.h"
#include "generation/text_memory.h"
#include "generation/visible_text.h"
#include "inspection/trace.h"
#include "model/plan_text.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace py = pybind11;

namespace stagecraft {
namespace {

using Tokens = std::vector<TokenId>;
using Prompt = std::variant<std::string, Tokens>;
using Array = py::array_t<float>;

// A model, shared by its texts.
struct Loaded {
  ModelSource source;
  Engine engine;
  Tokenizer tokenizer;
  std::size_t context;
  std::optional<ChatFormat> chat_format{};  // opened by the first chat, or by Model(chat_template=)
  std::optional<Engine> walker{};  // for trace: the fast backends have no result for each step
  // Of the last text that ended: a text that begins in the same way need not be computed again from
  // its beginning.
  std::unique_ptr<Session> idle{};
  std::mutex
      computing{};  // an engine computes one pass at a time, and Python may have several threads
};

// While C++ computes, other threads of Python run.
struct Computing {
  explicit Computing(Loaded& loaded) : lock(loaded.computing) {}
  py::gil_scoped_release others_run;
  std::scoped_lock<std::mutex> lock;
};

// Between the passes of a long prompt: Ctrl-C ends it.
bool no_signal() {
  const py::gil_scoped_acquire python;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  return true;
}

// A model may write bytes that are no UTF-8.
py::str as_text(const std::string& bytes) {
  const auto size = static_cast<py::ssize_t>(bytes.size());
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(bytes.data(), size, "replace"));
}

void check_prompt(const Loaded& loaded, const Tokens& prompt) {
  if (prompt.empty()) throw Error("prompt: expected at least one token, found none");
  if (prompt.size() > loaded.context) {
    throw Error("prompt: expected at most {} tokens (context), found {}", loaded.context,
                prompt.size());
  }
}

Tokens tokens_of(const Loaded& loaded, const Prompt& prompt) {
  const auto* text = std::get_if<std::string>(&prompt);
  Tokens tokens = text == nullptr ? std::get<Tokens>(prompt)
                                  : loaded.tokenizer.encode(*text, {.add_special = true});
  check_prompt(loaded, tokens);
  return tokens;
}

const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::EndToken:
      return "end";
    case StopReason::MaxTokens:
      return "max_tokens";
    case StopReason::ContextFull:
      return "context";
    case StopReason::Stopped:
      return "stop";
  }
  return "";
}

class Generation {
 public:
  Generation(std::shared_ptr<Loaded> loaded, const Tokens& prompt, const GenerationOptions& options,
             std::vector<std::string> stops, Random random)
      : loaded_(std::move(loaded)),
        text_(prompt, options, random, loaded_->context),
        visible_(loaded_->tokenizer, prompt, std::move(stops)),
        scratch_(loaded_->engine.plan().vocab_size) {}

  // The engine counts its sequences, so no pass may run while one is destroyed.
  ~Generation() {
    if (!session_) return;
    const Computing computing(*loaded_);
    session_.reset();
  }

  py::str next() {
    std::string piece;
    if (!reason_) {
      const Computing computing(*loaded_);
      while (piece.empty() && !reason_) piece = make_token();
      if (reason_) loaded_->idle = std::move(session_);
    }
    if (piece.empty()) throw py::stop_iteration();
    return as_text(piece);
  }

  Tokens tokens() const { return {text_.made().begin(), text_.made().end()}; }
  std::optional<std::string> reason() const {
    if (!reason_) return {};
    return name_of(*reason_);
  }

 private:
  // The text that the next token adds, which may be none.
  std::string make_token() {
    if (!session_) begin();
    const Continuation::Step step = next_token(*session_, text_, scratch_, no_signal);
    std::string piece = step.token ? visible_.push(*step.token) : "";
    if (visible_.stopped()) {
      reason_ = StopReason::Stopped;
    } else if (step.end) {
      reason_ = step.end;
      piece += visible_.finish();
    }
    return piece;
  }

  void begin() {
    session_ = std::move(loaded_->idle);
    if (!session_) session_ = std::make_unique<Session>(loaded_->engine, loaded_->context);
    const auto wanted = text_.tokens();
    const std::size_t same = common_prefix(session_->tokens(), wanted);
    session_->truncate(std::min(same, wanted.size() - 1));
  }

  std::shared_ptr<Loaded> loaded_;
  Continuation text_;
  VisibleText visible_;
  std::vector<TokenProbability> scratch_;
  std::unique_ptr<Session> session_;
  std::optional<StopReason> reason_;
};

// ---- options ------------------------------------------------------------------------------------

template <class T>
T one_of(const char* option, const std::string& found,
         std::initializer_list<std::pair<const char*, T>> known) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : known) {
    if (found == name) return value;
    names.emplace_back(name);
  }
  throw Error("{}: expected {}, found '{}'", option, fmt::join(names, " or "), found);
}

// A whole number from 0 to `max`. pybind11 would refuse -1 with several lines about C++.
std::uint64_t whole_number(const char* option, const py::object& value, std::uint64_t max) {
  const auto number = py::reinterpret_steal<py::int_>(PyNumber_Index(value.ptr()));
  if (!number) throw py::error_already_set();  // TypeError
  if (number < py::int_(0) || number > py::int_(max)) {
    throw Error("{}: expected a whole number from 0 to {}, found {}", option, max,
                printable(py::str(number).cast<std::string>()));
  }
  return number.cast<std::uint64_t>();
}

void check_range(const char* option, double value, NumberRange range) {
  if (!(value >= range.min && value <= range.max)) {
    throw Error("{}: expected {} to {}, found {}", option, range.min, range.max, value);
  }
}

using Stops = std::variant<std::string, std::vector<std::string>>;

std::vector<std::string> texts_of(Stops stops) {
  if (auto* one = std::get_if<std::string>(&stops)) stops = std::vector{std::move(*one)};
  auto texts = std::get<std::vector<std::string>>(std::move(stops));
  if (std::ranges::count(texts, "") != 0) throw Error("stop: expected a text, found an empty one");
  return texts;
}

// What generate and chat take beside a prompt; the defaults are those of ./stage story.
struct Options {
  std::size_t max_tokens;
  float temperature;
  std::size_t top_k;
  float top_p, repeat_penalty;
  std::vector<std::string> stop;
  std::optional<std::uint64_t> seed;
};

class Model {
 public:
  Model(const std::string& path, std::size_t threads, const std::string& backend,
        const std::string& kv_type, std::size_t context, const std::string& chat_template) {
    EngineOptions options{
        one_of<BackendKind>("backend", backend,
                            {{"cpu", BackendKind::Cpu}, {"textbook", BackendKind::Textbook}}),
        threads};
    if (!kv_type.empty()) {
      options.kv_type = one_of<KvType>("kv_type", kv_type,
                                       {{"f32", KvType::F32},
                                        {"f16", KvType::F16},
                                        {"bf16", KvType::BF16},
                                        {"q8_0", KvType::Q8_0}});
    }
    const ModelSource source = path.empty() ? std::filesystem::path() : find_model(path, "");
    Engine engine = Engine::open(source, options);
    if (context == 0) context = default_context(engine.plan());
    check_memory(engine, context);
    loaded_ = std::make_shared<Loaded>(source, std::move(engine), Tokenizer::open(source), context);
    if (!chat_template.empty()) open_chat_format(chat_template);
  }

  std::size_t context() const { return loaded_->context; }
  const Plan& plan() const { return loaded_->engine.plan(); }

  Tokens encode(const std::string& text) const {
    return loaded_->tokenizer.encode(text, {.add_special = true});
  }
  py::str decode(const Tokens& tokens) const { return as_text(loaded_->tokenizer.decode(tokens)); }

  std::unique_ptr<Generation> generate(const Prompt& prompt, const Options& options) {
    return generation(tokens_of(*loaded_, prompt), plan().eos_ids, options);
  }

  std::unique_ptr<Generation> chat(const py::list& messages, const Options& options) {
    const auto conversation = conversation_of(messages);
    auto& format = loaded_->chat_format;
    if (!format) open_chat_format("");
    Tokens ends = plan().eos_ids;
    ends.insert(ends.end(), format->end_tokens().begin(), format->end_tokens().end());
    const Tokens prompt = format->tokens(messages_of(conversation));
    check_prompt(*loaded_, prompt);
    return generation(prompt, ends, options);
  }

  Array logits(const Prompt& prompt) {
    const Tokens tokens = tokens_of(*loaded_, prompt);
    Engine& engine = loaded_->engine;
    check_text_memory(tokens.size(), sizeof(float) * static_cast<double>(tokens.size()) *
                                         static_cast<double>(plan().vocab_size));
    Array result({tokens.size(), plan().vocab_size});
    const MatrixView<float> rows(result.mutable_data(), tokens.size(), plan().vocab_size);
    const Computing computing(*loaded_);
    const auto sequence = engine.make_sequence(tokens.size(), 0);
    feed_tokens(engine, *sequence, tokens, rows, no_signal);
    return result;
  }

  py::dict trace(const Prompt& prompt) {
    const Tokens tokens = tokens_of(*loaded_, prompt);
    std::vector<Activation> activations;
    {
      const Computing computing(*loaded_);
      auto& walker = loaded_->walker;
      const EngineOptions options{BackendKind::Walker, loaded_->engine.n_threads(), KvType::F32};
      if (!walker) walker = Engine::open(loaded_->source, options);
      const std::size_t passes[] = {tokens.size()};
      activations = stagecraft::trace(*walker, tokens, passes);
    }
    py::dict result;
    for (const Activation& one : activations) {
      result[py::str(one.name)] = Array(one.shape, one.values.data());
    }
    return result;
  }

 private:
  void open_chat_format(const std::string& chosen) {
    loaded_->chat_format =
        ChatFormat::open(loaded_->source, loaded_->tokenizer, {chosen, "chat_template"});
  }

  // number: counts from 1, as in the errors of parse_conversation.
  static std::map<std::string, std::string> fields_of(const py::handle& message,
                                                      std::size_t number) {
    const auto is_text = [](const auto& item) {  // pybind11 would also take bytes for a string
      return py::isinstance<py::str>(item.first) && py::isinstance<py::str>(item.second);
    };
    try {
      if (py::isinstance<py::dict>(message) &&
          std::ranges::all_of(message.cast<py::dict>(), is_text)) {
        return message.cast<std::map<std::string, std::string>>();
      }
    } catch (const py::cast_error&) {  // a string that is no UTF-8: half of a surrogate pair
    }
    throw Error(
        "messages: message {}: expected a dictionary with the strings role and content, found {}",
        number, printable(py::repr(message).cast<std::string>()));
  }

  // Its last exchange has no answer yet.
  static Conversation conversation_of(const py::list& messages) {
    auto list = nlohmann::json::array();
    for (const py::handle& message : messages) {
      list.push_back(fields_of(message, list.size() + 1));
    }
    if (list.empty() || list.back().value("role", "") != "user") {
      throw Error("messages: expected a last message of the role 'user', found none");
    }
    list.push_back({{"role", "assistant"}, {"content", ""}});
    return parse_conversation(json_text(nlohmann::json{{"messages", list}}), "messages");
  }

  std::unique_ptr<Generation> generation(const Tokens& prompt, const Tokens& ends,
                                         const Options& options) {
    check_range("temperature", options.temperature, kTemperatures);
    check_range("top_p", options.top_p, kTopPs);
    check_range("repeat_penalty", options.repeat_penalty, kRepeatPenalties);
    const GenerationOptions chosen{.max_tokens = options.max_tokens,
                                   .sampler = {options.temperature, options.top_k, options.top_p},
                                   .repeat_penalty = options.repeat_penalty,
                                   .end_tokens = ends};
    const std::uint64_t seed = options.seed ? *options.seed : std::random_device()();
    return std::make_unique<Generation>(loaded_, prompt, chosen, options.stop, Random(seed));
  }

  std::shared_ptr<Loaded> loaded_;
};

// Defines a method that takes a prompt and Options.
template <class What>
void define(py::class_<Model>& model, const char* name, const char* what,
            std::unique_ptr<Generation> (Model::*method)(const What&, const Options&),
            const char* doc) {
  model.def(
      name,
      [method](Model& self, const What& prompt, const py::object& max_tokens, float temperature,
               const py::object& top_k, float top_p, float repeat_penalty, Stops stop,
               const py::object& seed) {
        Options options{whole_number("max_tokens", max_tokens, SIZE_MAX),
                        temperature,
                        whole_number("top_k", top_k, SIZE_MAX),
                        top_p,
                        repeat_penalty,
                        texts_of(std::move(stop)),
                        {}};
        if (!seed.is_none()) options.seed = whole_number("seed", seed, UINT64_MAX);
        return (self.*method)(prompt, options);
      },
      py::arg(what), py::kw_only(), py::arg("max_tokens") = 256,
      py::arg("temperature") = kDefaultSampler.temperature,
      py::arg("top_k") = kDefaultSampler.top_k, py::arg("top_p") = kDefaultSampler.top_p,
      py::arg("repeat_penalty") = 1.0f, py::arg("stop") = std::vector<std::string>(),
      py::arg("seed") = py::none(), doc);
}

}  // namespace

PYBIND11_MODULE(_engine, module) {
  module.attr("__version__") = STAGECRAFT_VERSION;
  py::register_exception<Error>(module, "Error", PyExc_ValueError);

  py::class_<Generation>(module, "Generation", "The pieces of a text, as the model writes them.")
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &Generation::next)
      .def_property_readonly("tokens", &Generation::tokens, "The ids of the new tokens so far.")
      .def_property_readonly("reason", &Generation::reason,
                             "Why the text has ended: 'end' (the model ended it), 'stop', "
                             "'max_tokens' or 'context'; None while it has not.");

  py::class_<Model> model(module, "Model", R"(A language model.

path      a folder, a file (GGUF, llama2.c, .flm), or the name of a pulled model
threads   0: one for each core
backend   'cpu', or 'textbook': the operators of the course, one after the other
kv_type   the type of the KV cache: 'f32', 'f16', 'bf16' or 'q8_0'; '': f16, or bf16 where it is
          faster; always f32 for the textbook backend
context   the most tokens of a text; 0: what the model was trained for, at most 4096
chat_template  a built-in template, such as 'zephyr', or a file; '': the model's own

Raises stagecraft.Error, a ValueError, which names the file and what was expected, and TypeError
for an argument of a wrong type.)");
  model
      .def(py::init([](const std::filesystem::path& path, const py::object& threads,
                       const std::string& backend, const std::string& kv_type,
                       const py::object& context, const std::string& chat_template) {
             return Model(path, whole_number("threads", threads, kMostThreads), backend, kv_type,
                          whole_number("context", context, SIZE_MAX), chat_template);
           }),
           py::arg("path"), py::kw_only(), py::arg("threads") = 0, py::arg("backend") = "cpu",
           py::arg("kv_type") = "", py::arg("context") = 0, py::arg("chat_template") = "")
      .def_property_readonly("context", &Model::context)
      .def_property_readonly("vocab_size", [](const Model& self) { return self.plan().vocab_size; })
      .def(
          "plan", [](const Model& self) { return plan_text(self.plan()); },
          "The steps of a forward pass, as a text.")
      .def("encode", &Model::encode, py::arg("text"), "The token ids of a text.")
      .def("decode", &Model::decode, py::arg("tokens"), "The text of token ids.")
      .def("logits", &Model::logits, py::arg("prompt"),
           "The logits of every next token, [n_tokens, vocab_size], for a text or token ids.")
      .def("trace", &Model::trace, py::arg("prompt"),
           "Every intermediate result for a text or token ids, by name, in the order of\n"
           "computation: [n_tokens, width]; 'layers.N.attn_probs' is [n_heads, n_tokens, "
           "n_tokens].");
  define<Prompt>(model, "generate", "prompt", &Model::generate,
                 "Continues a text or token ids; an iterator of pieces of text.\n\n"
                 "The same seed gives the same text.");
  define<py::list>(model, "chat", "messages", &Model::chat,
                   "Answers the last of [{'role': 'user', 'content': ...}, ...]; an iterator of\n"
                   "pieces of text. The roles: 'system' at most as the first, then 'user' and\n"
                   "'assistant' in turn, 'user' last.");
}

}  // namespace stagecraft
