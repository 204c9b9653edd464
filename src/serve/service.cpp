#include "serve/service.h"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/ascii.h"
#include "base/json_text.h"
#include "base/percent_encoding.h"
#include "serve/loopback.h"
#include "serve/page.h"

namespace stagecraft {
namespace {

constexpr const char* kJson = "application/json";
constexpr std::string_view kModelsFolder = "/v1/models/";

HttpAnswer json_answer(const nlohmann::json& json) {
  return {200, kJson, json_text(json) + "\n", {}};
}

// The time depends on the length of `given`, not on where the texts differ.
bool equal_in_constant_time(std::string_view given, std::string_view key) {
  unsigned different = given.size() == key.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    different |= static_cast<unsigned char>(given[i] ^ key[i % key.size()]);
  }
  return different == 0;
}

// True if a Host header names this machine. A web page elsewhere can make its own name stand for
// 127.0.0.1 ("DNS rebinding") and could then read answers. But Host still has that name.
bool is_local_name(std::string_view header) {
  if (header.empty()) return true;  // HTTP/1.0
  if (!header.starts_with('[')) return is_loopback(std::string(header.substr(0, header.find(':'))));
  return is_loopback(std::string(header.substr(1, std::max<std::size_t>(header.find(']'), 1) - 1)));
}

bool is_json(std::string_view content_type) {
  return ascii_lower(trimmed(content_type.substr(0, content_type.find(';')))) == kJson;
}

ApiError queue_full() {
  return {429, "", "queue_full", "server: too many requests: the queue is full; try again later"};
}

}  // namespace

Service::Service(const ServedModel& model, const Options& options)
    : model_(model), options_(options), began_(std::time(nullptr)) {}

void Service::on_request(ConnectionId connection, HttpRequest request) {
  ++requests_;
  Reply reply;
  try {
    check_access(request);
    reply = route(connection, request);
  } catch (const ApiError& error) {
    reply = refuse(error);
  } catch (const std::exception& error) {
    reply = refuse(ApiError::server_error(error.what()));
  }
  if (reply) server_->answer(connection, std::move(*reply));
}

void Service::count_refused(const ApiError& error) {
  ++refused_;
  if (options_.on_refused) options_.on_refused(error);
}

HttpAnswer Service::refuse(const ApiError& error) {
  count_refused(error);
  HttpAnswer answer{error.status(), kJson, error.json(), {}};
  if (error.status() == 401) answer.headers = {{"WWW-Authenticate", "Bearer"}};
  if (error.status() == 429) answer.headers = {{"Retry-After", "1"}};
  return answer;
}

HttpAnswer Service::refusal(const HttpError& error) {
  ++requests_;
  return refuse({error.status(), "", "", error.what()});
}

void Service::check_access(const HttpRequest& request) const {
  if (options_.only_local_names && !is_local_name(request.header("host"))) {
    throw ApiError(403, "", "",
                   fmt::format("request: header host: expected localhost or 127.0.0.1, found '{}'",
                               printable(request.header("host"))));
  }
  // The page needs no key: it contains no secret, and it asks the user for the key.
  const bool is_open = request.path == "/health" || find_page_file(request.path) != nullptr;
  if (options_.api_key.empty() || is_open) return;
  const std::string_view given = request.header("authorization");
  const std::size_t blank = std::min(given.find(' '), given.size());
  const bool is_bearer = ascii_lower(given.substr(0, blank)) == "bearer";
  if (is_bearer && equal_in_constant_time(trimmed(given.substr(blank)), options_.api_key)) return;
  throw ApiError(401, "", "invalid_api_key",
                 fmt::format("request: header authorization: expected 'Bearer' and the server's "
                             "key, found {}",
                             given.empty() ? "none" : "something else"));
}

struct Service::Route {
  std::string_view method;  // GET also allows HEAD
  std::string_view path;    // one that ends with / also stands for all paths below it
  Reply (Service::*handler)(ConnectionId, const HttpRequest&);
};

// Throws ApiError (404) if the server has no such path.
const Service::Route& Service::find_route(std::string_view path) {
  static constexpr std::array<Route, 13> kRoutes = {{
      {"POST", "/v1/chat/completions", &Service::complete_chat},
      {"POST", "/v1/completions", &Service::complete},
      {"POST", "/v1/responses", &Service::respond},
      {"GET", "/v1/models", &Service::models},
      {"GET", kModelsFolder, &Service::model},
      {"POST", "/tokenize", &Service::tokenize},
      {"GET", "/health", &Service::health},
      {"GET", "/metrics", &Service::metrics},
      {"GET", "/glass/model", &Service::describe},
      {"POST", "/glass/choices", &Service::glass<GlassView::Choices>},
      {"POST", "/glass/attention", &Service::glass<GlassView::Attention>},
      {"POST", "/glass/layers", &Service::glass<GlassView::Layers>},
      {"POST", "/glass/steps", &Service::glass<GlassView::Steps>},
  }};
  static constexpr Route kPage = {"GET", "", &Service::page};  // page.cpp has the paths
  if (find_page_file(path) != nullptr) return kPage;
  for (const Route& route : kRoutes) {
    const bool is_folder = route.path.ends_with('/');
    if (is_folder ? path.starts_with(route.path) : path == route.path) return route;
  }
  std::string paths;
  for (const Route& route : kRoutes) {
    paths += fmt::format("{}{}", paths.empty() ? "" : ", ", route.path);
  }
  throw ApiError(
      404, "", "not_found",
      fmt::format("request: path: expected one of {}, found '{}'", paths, printable(path)));
}

Service::Reply Service::route(ConnectionId connection, const HttpRequest& request) {
  const Route& route = find_route(request.path);
  const bool reads = route.method == "GET";
  if (request.method != route.method && !(reads && request.method == "HEAD")) {
    const std::string allowed = reads ? "GET, HEAD" : "POST";
    HttpAnswer answer = refuse({405, "", "method_not_allowed",
                                fmt::format("request: method: expected {}, found '{}'", allowed,
                                            printable(request.method))});
    answer.headers = {{"Allow", allowed}};
    return answer;
  }
  if (const std::string_view encoding = request.header("content-encoding");
      !encoding.empty() && ascii_lower(encoding) != "identity") {
    throw ApiError(415, "", "",
                   fmt::format("request: header content-encoding: expected none, found '{}'",
                               printable(encoding)));
  }
  // A browser lets any web page send a form to any server, but not application/json.
  if (!reads && !is_json(request.header("content-type"))) {
    throw ApiError(415, "", "",
                   fmt::format("request: header content-type: expected {}, found '{}'", kJson,
                               printable(request.header("content-type"))));
  }
  return (this->*route.handler)(connection, request);
}

// The seed of a request without one.
std::uint64_t Service::seed() const { return model_.seed ? *model_.seed : std::random_device()(); }

Service::Reply Service::complete_chat(ConnectionId connection, const HttpRequest& request) {
  start(connection, parse_chat_completion(request.body, model_, seed()));
  return std::nullopt;
}

Service::Reply Service::complete(ConnectionId connection, const HttpRequest& request) {
  start(connection, parse_completion(request.body, model_, seed()));
  return std::nullopt;
}

void Service::start(ConnectionId connection, CompletionRequest request) {
  const char* const kind = request.chat ? "chatcmpl" : "cmpl";
  CompletionWriter::Options options{head(request, fmt::format("{}-{}", kind, new_id()))};
  if (request.token_ids) {
    auto& prompts = options.prompts.emplace();
    for (std::size_t i = 0; i < request.texts.size(); i += request.n) {
      prompts.push_back(request.texts[i].prompt);
    }
  }
  options.n_texts = request.texts.size();
  submit(connection, std::move(request.texts),
         std::make_unique<CompletionWriter>(*model_.tokenizer, options));
}

Service::Reply Service::respond(ConnectionId connection, const HttpRequest& http) {
  ResponseRequest request = parse_response(http.body, model_, seed());
  ResponseWriter::Options options{head(request.completion, new_id()), std::move(request.echo)};
  submit(connection, std::move(request.completion.texts),
         std::make_unique<ResponseWriter>(options));
  return std::nullopt;
}

AnswerHead Service::head(const AnswerForm& form, std::string id) const {
  return {form, std::move(id), model_.names.front(), std::time(nullptr)};
}

template <GlassView view>
Service::Reply Service::glass(ConnectionId connection, const HttpRequest& request) {
  if (!options_.has_glass_box) {
    throw ApiError(
        404, "", "not_found",
        "request: path: this model has no glass box: it would run the student's functions");
  }
  const std::optional<GlassId> id = glass_box_->submit(parse_glass(request.body, model_, view));
  if (!id) throw queue_full();
  glass_owners_[*id] = connection;
  return std::nullopt;
}

std::string Service::new_id() { return fmt::format("{:x}{:06x}", began_, ++completions_); }

void Service::submit(ConnectionId connection, std::vector<TextRequest> texts,
                     std::unique_ptr<Answer> answer) {
  const std::size_t n = texts.size();
  const std::string begin = answer->is_stream() ? answer->begin() : "";
  std::optional<TextId> first;
  try {
    first = scheduler_->submit(std::move(texts));
  } catch (const Error& error) {  // the scheduler refuses the prompt
    throw ApiError::bad_request("", fmt::format("server: {}", error.what()));
  }
  if (!first) throw queue_full();
  const bool is_stream = answer->is_stream();
  // If something fails from here on, the next request of this connection must not get the events of
  // these texts.
  try {
    answering_.emplace(connection, Answering{std::move(answer), *first, n});
    for (std::size_t i = 0; i < n; ++i) owners_[*first + i] = connection;
    if (!is_stream) return;
    server_->begin_stream(connection, "text/event-stream", ":\n\n");
    server_->stream(connection, begin);
  } catch (...) {
    forget(connection, *first, n);
    throw;
  }
}

void Service::on_wake() {
  for (const TextEvent& event : scheduler_->take_events()) {
    const auto owner = owners_.find(event.text);
    if (owner == owners_.end()) continue;  // its client is gone
    const ConnectionId connection = owner->second;
    if (event.end) owners_.erase(owner);
    try {
      answer(connection, answering_.at(connection), event);
    } catch (const std::exception& error) {  // ends this answer, and not the server
      fail(connection, error.what());
    }
  }
  for (GlassAnswer& answer : glass_box_->take_answers()) {
    const auto owner = glass_owners_.extract(answer.id);
    if (owner.empty()) continue;  // its client is gone
    try {
      server_->answer(owner.mapped(), answer.error.empty()
                                          ? HttpAnswer{200, kJson, std::move(answer.json), {}}
                                          : refuse(ApiError::server_error(answer.error)));
    } catch (const std::exception&) {  // no memory: ends this connection, and not the server
      server_->break_answer(owner.mapped());
    }
  }
}

void Service::answer(ConnectionId connection, Answering& answering, const TextEvent& event) {
  server_->stream(connection, answering.writer->add(event.text - answering.first, event));
  if (!answering.writer->is_complete()) return;
  finish(connection, *answering.writer);
  answering_.erase(connection);
}

void Service::fail(ConnectionId connection, const std::string& problem) {
  const auto it = answering_.find(connection);
  if (it == answering_.end()) return;
  const bool is_stream = it->second.writer->is_stream();
  forget(connection, it->second.first, it->second.n_texts);
  try {
    const ApiError error = ApiError::server_error(problem);
    if (!is_stream) return server_->answer(connection, refuse(error));
    count_refused(error);
    server_->break_answer(connection);
  } catch (const std::exception&) {  // no memory, not even for this
    server_->break_answer(connection);
  }
}

void Service::forget(ConnectionId connection, TextId first, std::size_t n_texts) {
  for (std::size_t i = 0; i < n_texts; ++i) {
    scheduler_->cancel(first + i);
    owners_.erase(first + i);
  }
  answering_.erase(connection);
}

void Service::finish(ConnectionId connection, Answer& writer) {
  const std::optional<ApiError> error = writer.error();
  if (writer.is_stream()) {
    if (error) count_refused(*error);
    server_->stream(connection, writer.finish());
    server_->end_stream(connection);
  } else if (error) {
    server_->answer(connection, refuse(*error));
  } else {
    server_->answer(connection, {200, kJson, writer.finish(), {}});
  }
}

void Service::on_gone(ConnectionId connection) {
  for (auto it = glass_owners_.begin(); it != glass_owners_.end();) {
    if (it->second != connection) {
      ++it;
      continue;
    }
    ++gone_;
    glass_box_->cancel(it->first);
    it = glass_owners_.erase(it);
  }
  const auto it = answering_.find(connection);
  if (it == answering_.end()) return;
  ++gone_;
  forget(connection, it->second.first, it->second.n_texts);
}

Service::Reply Service::page(ConnectionId, const HttpRequest& request) {
  const PageFile* const file = find_page_file(request.path);
  return HttpAnswer{
      200,
      std::string(file->content_type),
      std::string(file->content),
      {{"Content-Security-Policy", std::string(kPagePolicy)}, {"Referrer-Policy", "no-referrer"}}};
}

Service::Reply Service::health(ConnectionId, const HttpRequest&) {
  if (!scheduler_->stats().usable) {
    throw ApiError(503, "", "",
                   "server: no text can be generated any more; start the server again");
  }
  return json_answer({{"status", "ok"}});
}

Service::Reply Service::models(ConnectionId, const HttpRequest&) {
  nlohmann::json data = nlohmann::json::array();
  for (const std::string& name : model_.names) data.push_back(model_json(name));
  return json_answer({{"object", "list"}, {"data", std::move(data)}});
}

Service::Reply Service::model(ConnectionId, const HttpRequest& request) {
  const std::string name = percent_decoded(request.path.substr(kModelsFolder.size()));
  check_model_name(name, model_);
  return json_answer(model_json(name));
}

nlohmann::json Service::model_json(const std::string& name) const {
  return {{"id", name},
          {"object", "model"},
          {"created", began_},
          {"owned_by", "stagecraft"},
          {"max_model_len", model_.context}};
}

// The facts about the model that the page needs.
Service::Reply Service::describe(ConnectionId, const HttpRequest&) {
  const GenerationOptions& defaults = model_.defaults.generation;
  std::set<TokenId> ends(defaults.end_tokens.begin(), defaults.end_tokens.end());
  if (model_.chat != nullptr) {
    ends.insert(model_.chat->end_tokens().begin(), model_.chat->end_tokens().end());
  }
  return json_answer({{"model", model_.names.front()},
                      {"chat", model_.chat != nullptr},
                      {"end_tokens", ends},
                      {"context", model_.context},
                      {"vocab_size", model_.vocab_size},
                      {"plan", model_.plan},
                      {"beside", options_.has_beside},
                      {"glass_box", options_.has_glass_box},
                      {"temperature", shortest_decimal(defaults.sampler.temperature)},
                      {"top_k", defaults.sampler.top_k},
                      {"top_p", shortest_decimal(defaults.sampler.top_p)},
                      {"repeat_penalty", shortest_decimal(defaults.repeat_penalty)}});
}

Service::Reply Service::tokenize(ConnectionId, const HttpRequest& request) {
  const std::vector<TokenId> tokens = parse_tokenize(request.body, model_);
  return json_answer({{"tokens", tokens}, {"count", tokens.size()}});
}

// Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/
Service::Reply Service::metrics(ConnectionId, const HttpRequest&) {
  const SchedulerStats stats = scheduler_->stats();
  std::string text;
  const auto add = [&](const char* name, const char* type, const char* help, double value) {
    text +=
        fmt::format("# HELP stagecraft_{0} {1}\n# TYPE stagecraft_{0} {2}\nstagecraft_{0} {3}\n",
                    name, help, type, value);
  };
  const auto count = [](auto n) { return static_cast<double>(n); };
  add("requests_total", "counter", "HTTP requests.", count(requests_));
  add("refused_total", "counter", "HTTP requests answered with an error.", count(refused_));
  add("clients_gone_total", "counter", "Clients that left before their answer was complete.",
      count(gone_));
  add("connections", "gauge", "Open connections.", count(server_->n_connections()));
  add("texts_running", "gauge", "Texts that are being generated.", count(stats.running));
  add("texts_waiting", "gauge", "Texts that wait in the queue.", count(stats.waiting));
  add("prompt_tokens_total", "counter", "Tokens of prompts that were computed.",
      count(stats.prompt_tokens));
  add("cached_tokens_total", "counter", "Prompt tokens that were taken from the KV cache.",
      count(stats.cached_tokens));
  add("new_tokens_total", "counter", "Tokens that were generated.", count(stats.new_tokens));
  add("passes_total", "counter", "Forward passes of the model.", count(stats.passes));
  add("pass_seconds_total", "counter", "Time in forward passes.", stats.pass_seconds);
  return HttpAnswer{200, "text/plain; version=0.0.4", std::move(text), {}};
}

void SideBySide::on_request(ConnectionId connection, HttpRequest request) {
  constexpr std::string_view kBeside = "/beside";
  const bool is_second = second_ != nullptr && request.path.starts_with("/beside/");
  if (is_second) request.path.erase(0, kBeside.size());
  (is_second ? *second_ : first_).on_request(connection, std::move(request));
}

void SideBySide::on_gone(ConnectionId connection) {
  first_.on_gone(connection);
  if (second_ != nullptr) second_->on_gone(connection);
}

void SideBySide::on_wake() {
  first_.on_wake();
  if (second_ != nullptr) second_->on_wake();
}

}  // namespace stagecraft
