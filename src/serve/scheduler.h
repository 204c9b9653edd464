#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/engine.h"
#include "generation/continuation.h"
#include "generation/generate_text.h"
#include "generation/visible_text.h"

namespace stagecraft {

using TextId = std::uint64_t;

// A text to be made.
struct TextRequest {
  std::vector<TokenId> prompt;  // 1 to `context` tokens, each a row of the model's embedding
  TextOptions options;
  std::uint64_t seed = 0;
  std::optional<std::size_t> n_top;  // score each token, and name so many of the likeliest
};

// How likely the model found a token: natural logarithms of the softmax of its logits, before
// temperature, penalties, top-k and top-p.
struct TokenScore {
  TokenId token = 0;
  float logprob = 0.0f;
  std::vector<std::pair<TokenId, float>> top;  // likeliest first
};

struct TextEnd {
  StopReason reason = StopReason::EndToken;
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;  // of the prompt: computed for an earlier text
  std::size_t new_tokens = 0;
  std::string error;  // not empty: what went wrong
};

struct TextEvent {
  TextId text = 0;
  std::string piece;                // may be empty
  std::optional<TokenScore> score;  // of the token that was just made
  std::optional<TextEnd> end;       // set in the last event of a text
};

struct SchedulerStats {
  std::size_t running = 0;  // texts that have a place
  std::size_t waiting = 0;
  std::uint64_t prompt_tokens = 0;  // computed
  std::uint64_t cached_tokens = 0;  // of prompts: not computed again
  std::uint64_t new_tokens = 0;
  std::uint64_t passes = 0;
  double pass_seconds = 0.0;
};

// Makes many texts at once. One thread of its own runs the engine, step by step:
//
//   a step      1 row per text that is being written, and a chunk of rows of the prompts
//   between     finished and cancelled texts leave; others take the free places, first come, first
//               served
//
// While others are being written, the prompts of newcomers get a small chunk per step, so that
// nobody waits for a long prompt. Each text is, bit for bit, what generate_text() makes of the same
// prompt, options and seed alone.
//
// A place keeps the keys and values of its last text. A text whose prompt begins with the same
// tokens takes that place, and only the rest is computed: a chat that goes on costs its new
// message. What a prompt shares with another place, such as a system prompt, comes from there.
// Where the engine's sequences share memory, there are more places than texts at the same time, and
// what several have in common is in memory once. If memory gets short, the place that was unused
// for longest forgets the end of its text.
class Scheduler {
 public:
  struct Options {
    std::size_t n_texts = 4;       // that are made at the same time
    std::size_t context = 0;       // the most tokens of each
    std::size_t max_waiting = 64;  // texts that wait for a place
  };

  // on_event: called from its thread when take_events() has something new. Engine and tokenizer
  // must outlive it, and nobody else uses the engine. Throws Error if memory cannot be allocated.
  Scheduler(Engine& engine, const Tokenizer& tokenizer, const Options& options,
            std::function<void()> on_event);
  ~Scheduler();  // ends without finishing texts
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // These may be called from any thread.

  // All of these, or none: nullopt if that many more cannot wait. Returns the id of the first; the
  // others count on from it. Throws Error if no text of this model begins with one of the prompts.
  std::optional<TextId> submit(std::vector<TextRequest> requests);
  // Its place is free after the current step. No event comes any more after this returns, except
  // one that take_events() would have given now.
  void cancel(TextId text);
  std::vector<TextEvent> take_events();
  SchedulerStats stats() const;

 private:
  struct Waiting {
    TextId id;
    TextRequest request;
  };
  struct Place;
  struct Running {
    TextId id;
    Continuation continuation;
    VisibleText visible;
    std::optional<std::size_t> n_top;
    std::size_t fed;     // tokens of the continuation that are computed
    std::size_t cached;  // of these, not computed for this text
    // Another place has, or is computing, the first `shared` tokens of the prompt: to be copied as
    // soon as they are there. Null: there is nothing to wait for.
    const Place* donor = nullptr;
    TextId donor_text = 0;  // what ran there; 0: nothing
    std::size_t shared = 0;
  };
  struct Place {
    std::unique_ptr<Sequence> sequence;
    std::vector<TokenId> tokens;  // that the sequence holds, while nothing runs here
    std::uint64_t last_used = 0;
    std::optional<Running> running;
  };

  void run();
  bool wait_for_work();
  void admit(Waiting waiting, Place& place);
  Place* free_place(std::span<const TokenId> prompt);  // nullptr: as many run as may
  void step();
  void find_donor(Place& place) const;
  bool wait_for_donor(Place& place);
  std::vector<Place*> plan_step();
  void make_room();
  bool forget_some();
  bool wants_logits(std::span<Place* const> order) const;
  void choose(Place& place, std::span<float> logits, TokenId likeliest);
  TokenScore score(std::span<const float> logits, std::size_t n_top) const;
  void leave(Place& place);
  void finish(Place& place, TextEvent event, StopReason reason, const std::string& error = {});
  void fail_all(const std::string& problem);
  void emit(TextEvent event);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const Options options_;
  const std::function<void()> on_event_;

  // Of the thread alone.
  std::vector<Place> places_;
  std::vector<Input> inputs_;
  Matrix<float> logits_;            // [n_texts, vocab_size]
  std::vector<TokenId> likeliest_;  // see Backend::forward_greedy
  std::vector<TokenProbability> scratch_;
  std::vector<float> raw_;  // a row of logits before the penalty
  std::uint64_t uses_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::set<TextId> unfinished_;  // waiting or running, and not cancelled
  std::vector<TextEvent> events_;
  SchedulerStats stats_;
  TextId next_id_ = 1;
  bool stop_ = false;

  std::thread thread_;  // last: it uses the others
};

}  // namespace stagecraft
