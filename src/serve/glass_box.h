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
#include "generation/look.h"
#include "generation/sampler.h"
#include "text/tokenizer.h"

namespace stagecraft {

using LookId = std::uint64_t;

// What is asked about the last token of a text.
enum class GlassView {
  Choices,    // which tokens could come next, and what sampling does to their probabilities
  Attention,  // how much each head of each layer attends to each token
  Layers,     // what each layer would guess
  Steps,      // time and bytes of each step of the plan
};

struct GlassRequest {
  GlassView view = GlassView::Choices;
  std::vector<TokenId> tokens;  // 1 to `context`, each a row of the embedding
  std::optional<TokenId> next;  // the token that the text has there: named whatever its rank
  SamplerOptions sampler;
  float repeat_penalty = 1.0f;
  std::size_t repeat_last_n = 64;
  std::size_t top = 10;  // tokens that are named
};

struct GlassAnswer {
  LookId id = 0;
  std::string json;   // one object on one line
  std::string error;  // not empty: what went wrong
};

// Shows how the model came to a token. It has an engine with the textbook backend, which names
// every result, and one thread of its own: texts that the scheduler makes do not wait for it, and
// it takes one of the machine's cores while somebody looks. The engine is opened when it is first
// asked for. Requests are answered one after the other; what consecutive ones share is not computed
// again.
class GlassBox {
 public:
  static constexpr std::size_t kMaxWaiting = 8;

  // open: gives the engine; called once, by the thread, and again where it threw.
  // on_answer: called from the thread when take_answers() has something new.
  // The tokenizer must outlive it.
  GlassBox(std::function<Engine()> open, const Tokenizer& tokenizer, std::size_t context,
           std::function<void()> on_answer);
  ~GlassBox();  // ends without answering
  GlassBox(const GlassBox&) = delete;
  GlassBox& operator=(const GlassBox&) = delete;

  // These may be called from any thread.

  std::optional<LookId> submit(GlassRequest request);  // nullopt: too many wait
  void cancel(LookId id);                              // no answer comes any more
  std::vector<GlassAnswer> take_answers();

 private:
  struct Waiting {
    LookId id;
    GlassRequest request;
  };

  void run();
  std::optional<std::string> answer(const GlassRequest& request);
  bool goes_on();

  const std::function<Engine()> open_;
  const Tokenizer& tokenizer_;
  const std::size_t context_;
  const std::function<void()> on_answer_;

  // Of the thread alone.
  std::optional<Engine> engine_;
  std::optional<Session> session_;
  std::vector<TokenId> seen_;  // the text of look_
  std::optional<Look> look_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::optional<LookId> running_;  // none: nothing runs, or nobody wants it any more
  std::vector<GlassAnswer> answers_;
  LookId next_id_ = 1;
  bool stop_ = false;

  std::thread thread_;  // last: it uses the others
};

}  // namespace stagecraft
