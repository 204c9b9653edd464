#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "serve/answer_writer.h"
#include "serve/api_error.h"
#include "serve/api_request.h"
#include "serve/glass_box.h"
#include "serve/http_server.h"
#include "serve/responses.h"

namespace stagecraft {

// What lies between HTTP and the scheduler: which path means what, and which connection waits for
// which texts. All of it runs on the server's thread.
class Service : public HttpServer::Handler {
 public:
  struct Options {
    std::string api_key;           // empty: nobody is asked for one
    bool only_local_names = true;  // refuse a Host header that does not name this machine
    bool has_beside = false;       // is there a second model beside it (SideBySide)?
    bool has_glass_box = true;     // does the page show how this model chose a token?
  };
  // model: must outlive it.
  Service(const ServedModel& model, const Options& options);

  // Before the server runs.
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
    TextId first;  // its texts' ids count on from here
    std::size_t n_texts;
  };

  HttpAnswer route(ConnectionId connection, const HttpRequest& request, bool& later);
  void check_access(const HttpRequest& request) const;
  void start(ConnectionId connection, CompletionRequest request);
  void start(ConnectionId connection, ResponseRequest request);
  void submit(ConnectionId connection, std::vector<TextRequest> texts,
              std::unique_ptr<Answer> answer);
  void look(ConnectionId connection, GlassRequest request);
  std::string new_id();
  void finish(ConnectionId connection, Answer& answer);
  HttpAnswer refuse(const ApiError& error);
  HttpAnswer models() const;
  HttpAnswer model(const std::string& name) const;
  nlohmann::json model_json(const std::string& name) const;
  HttpAnswer tokenize(const HttpRequest& request) const;
  HttpAnswer describe() const;
  HttpAnswer metrics() const;

  const ServedModel& model_;
  const Options options_;
  HttpServer* server_ = nullptr;
  Scheduler* scheduler_ = nullptr;
  GlassBox* glass_box_ = nullptr;
  std::map<ConnectionId, Answering> answering_;
  std::map<TextId, ConnectionId> owners_;  // of texts that have not ended
  std::map<LookId, ConnectionId> lookers_;
  std::time_t began_;
  std::uint64_t requests_ = 0, refused_ = 0, gone_ = 0, completions_ = 0;
};

// Two models at one address: a path below /beside/ is a path of the second model. No second model:
// null.
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
