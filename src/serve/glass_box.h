#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/engine.h"
#include "inspection/look.h"
#include "serve/glass_request.h"
#include "text/tokenizer.h"

namespace stagecraft {

using GlassId = std::uint64_t;

struct GlassAnswer {
  GlassId id = 0;
  std::string json;   // one object on one line
  std::string error;  // empty if nothing failed
};

// Shows how the model chose a token. It has its own engine, because it needs the result of each
// step of the plan, which a backend with fused steps does not have (StepResults). It also
// has its own thread, so the scheduler's texts do not wait for it. The engine is opened at the
// first request. Requests are answered one after the other. If a text begins like the previous one,
// the common beginning is not computed again.
class GlassBox {
 public:
  static constexpr std::size_t kMaxWaiting = 8;

  // open: opens the engine; the thread calls it at the first request, and again if it threw.
  // on_answer: the thread calls it when take_answers() has a new answer.
  // The tokenizer must outlive the GlassBox. Throws Error if the system does not start the thread.
  GlassBox(std::function<Engine()> open, const Tokenizer& tokenizer, std::size_t context,
           std::function<void()> on_answer);
  // Does not answer the requests that wait. Waits until `open` returns if the thread is in it.
  ~GlassBox();
  GlassBox(const GlassBox&) = delete;
  GlassBox& operator=(const GlassBox&) = delete;

  // These may be called from any thread.

  std::optional<GlassId> submit(GlassRequest request);  // nullopt: too many requests wait
  void cancel(GlassId id);                              // no answer to this request will come
  std::vector<GlassAnswer> take_answers();              // returns the answers since the last call

 private:
  struct Waiting {
    GlassId id;
    GlassRequest request;
  };

  void run();
  std::optional<std::string> answer(const GlassRequest& request);
  bool goes_on();

  const std::function<Engine()> open_;
  const Tokenizer& tokenizer_;
  const std::size_t context_;
  const std::function<void()> on_answer_;

  // Only the thread uses these.
  std::optional<Engine> engine_;
  std::optional<Session> session_;
  std::vector<TokenId> seen_;  // the text of look_
  std::optional<Look> look_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::optional<GlassId> running_;  // null: nothing runs, or its request was cancelled
  std::vector<GlassAnswer> answers_;
  GlassId next_id_ = 1;
  bool stop_ = false;

  std::thread thread_;  // last, because it uses the other members
};

}  // namespace stagecraft
