#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "serve/api_error.h"
#include "serve/api_request.h"
#include "serve/completion_writer.h"
#include "serve/glass_box.h"
#include "serve/http_server.h"
#include "serve/response_request.h"
#include "serve/response_writer.h"
#include "serve/scheduler.h"

namespace stagecraft {

// Connects HTTP with the scheduler and the glass box: which path has which meaning, and which
// connection waits for which texts. Everything runs on the server's thread.
class Service : public HttpServer::Handler {
 public:
  struct Options {
    std::string api_key;           // empty: clients need no key
    bool only_local_names = true;  // refuse a Host header that does not name this machine
    bool has_beside = false;       // a second model is served, too (SideBySide)
    bool has_glass_box = true;     // POST /glass/... is answered; false: 404
    std::function<void(const ApiError&)> on_refused = {};  // called for each refused request
  };
  // The model must outlive the service.
  Service(const ServedModel& model, const Options& options);

  // Call this before the server runs.
  void use(HttpServer& server, Scheduler& scheduler, GlassBox& glass_box) {
    server_ = &server;
    scheduler_ = &scheduler;
    glass_box_ = &glass_box;
  }

  void on_request(ConnectionId connection, HttpRequest request) override;
  HttpAnswer refusal(const HttpError& error) override;
  void on_gone(ConnectionId connection) override;
  void on_wake() override;

 private:
  struct Answering {
    std::unique_ptr<Answer> writer;
    TextId first;  // the id of the first text; the others have the next ids
    std::size_t n_texts;
  };

  // nullopt: the answer comes later.
  using Reply = std::optional<HttpAnswer>;
  struct Route;
  static const Route& find_route(std::string_view path);
  Reply route(ConnectionId connection, const HttpRequest& request);
  void check_access(const HttpRequest& request) const;

  // One per path; they throw ApiError.
  Reply complete_chat(ConnectionId connection, const HttpRequest& request);
  Reply complete(ConnectionId connection, const HttpRequest& request);
  Reply respond(ConnectionId connection, const HttpRequest& http);
  template <GlassView view>
  Reply glass(ConnectionId connection, const HttpRequest& request);
  Reply page(ConnectionId, const HttpRequest& request);
  Reply health(ConnectionId, const HttpRequest&);
  Reply models(ConnectionId, const HttpRequest&);
  Reply model(ConnectionId, const HttpRequest& request);
  Reply tokenize(ConnectionId, const HttpRequest& request);
  Reply describe(ConnectionId, const HttpRequest&);
  Reply metrics(ConnectionId, const HttpRequest&);

  std::uint64_t seed() const;
  void start(ConnectionId connection, CompletionRequest request);
  void submit(ConnectionId connection, std::vector<TextRequest> texts,
              std::unique_ptr<Answer> answer);
  std::string new_id();
  AnswerHead head(const AnswerForm& form, std::string id) const;
  void answer(ConnectionId connection, Answering& answering, const TextEvent& event);
  void fail(ConnectionId connection, const std::string& problem);
  // Cancels the texts of a connection.
  void forget(ConnectionId connection, TextId first, std::size_t n_texts);
  void finish(ConnectionId connection, Answer& answer);
  HttpAnswer refuse(const ApiError& error);
  void count_refused(const ApiError& error);
  nlohmann::json model_json(const std::string& name) const;

  const ServedModel& model_;
  const Options options_;
  HttpServer* server_ = nullptr;
  Scheduler* scheduler_ = nullptr;
  GlassBox* glass_box_ = nullptr;
  std::map<ConnectionId, Answering> answering_;
  std::map<TextId, ConnectionId> owners_;  // the connections of texts that have not ended
  std::map<GlassId, ConnectionId> glass_owners_;
  std::time_t began_;
  std::uint64_t requests_ = 0, refused_ = 0, gone_ = 0, completions_ = 0;
};

// Serves two models at one address: paths below /beside/ belong to the second model. second: null
// if there is none.
class SideBySide : public HttpServer::Handler {
 public:
  SideBySide(Service& first, Service* second) : first_(first), second_(second) {}

  void on_request(ConnectionId connection, HttpRequest request) override;
  HttpAnswer refusal(const HttpError& error) override { return first_.refusal(error); }
  void on_gone(ConnectionId connection) override;
  void on_wake() override;

 private:
  Service& first_;
  Service* second_;
};

}  // namespace stagecraft
