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
#include "generation/visible_text.h"
#include "serve/text_request.h"

namespace stagecraft {

struct SchedulerStats {
  std::size_t running = 0;  // texts that have a slot
  std::size_t waiting = 0;
  std::uint64_t prompt_tokens = 0;  // prompt tokens that were computed
  std::uint64_t cached_tokens = 0;  // prompt tokens that were computed for another text
  std::uint64_t new_tokens = 0;
  std::uint64_t passes = 0;
  double pass_seconds = 0.0;
  bool usable = true;  // false: no text can be generated any more, for example if the GPU failed
};

// Generates many texts at the same time. A thread of its own runs the engine, step by step:
//
//   each step    1 row per text that is being generated, and a chunk of rows of the prompts
//   in between   finished and cancelled texts leave, and waiting texts take the free slots, in the
//                order in which they came
//
// While texts are being generated, the prompts of new texts get a small chunk per step, so that
// nobody waits for a long prompt. Each text is, bit for bit, the text that generate_text() makes
// alone of the same prompt, options and seed.
//
// A slot keeps the keys and values of its last text. A text whose prompt begins with the same
// tokens takes that slot, and only the rest is computed: the next answer of a chat costs only its
// new message. If another slot has a common beginning, such as a system prompt, it is copied from
// there. If the engine's sequences share memory, there are more slots than texts at the same time,
// and a common beginning is stored once. If memory becomes scarce, the slot that was unused for
// the longest time drops the end of its text.
class Scheduler {
 public:
  struct Options {
    std::size_t n_texts = 4;       // texts generated at the same time
    std::size_t context = 0;       // the most tokens of each text, prompt included
    std::size_t max_waiting = 64;  // texts that wait for a slot
  };

  // on_event: the scheduler's thread calls it when take_events() has new events. The engine and the
  // tokenizer must outlive the scheduler, and nothing else may use the engine. Throws Error if
  // memory cannot be allocated.
  Scheduler(Engine& engine, const Tokenizer& tokenizer, const Options& options,
            std::function<void()> on_event);
  ~Scheduler();  // does not finish the texts
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // These may be called from any thread.

  // Queues all of these texts, or none. Returns the id of the first (the others have the next ids),
  // or nullopt if the queue has too little space. Throws Error if no text of this model can begin
  // with one of the prompts.
  std::optional<TextId> submit(std::vector<TextRequest> requests);
  // Frees the text's slot after the current step. After cancel() returns, no new event of this
  // text is added; take_events() may still return earlier ones.
  void cancel(TextId text);
  std::vector<TextEvent> take_events();  // returns the events since the last call
  SchedulerStats stats() const;

 private:
  struct Waiting {
    TextId id;
    TextRequest request;
  };
  struct Slot;
  struct Running {
    TextId id;
    Continuation continuation;
    VisibleText visible;
    std::optional<std::size_t> n_top;
    std::size_t fed;     // tokens of the continuation that have been computed
    std::size_t cached;  // of these, tokens that were not computed for this text
    // A slot that has computed, or is computing, the first `shared` tokens of this prompt. They
    // are copied as soon as they are complete. Null: there is nothing to copy.
    const Slot* donor = nullptr;
    TextId donor_text = 0;  // the text that ran in the donor; 0: none
    std::size_t shared = 0;
  };
  struct Slot {
    std::unique_ptr<Sequence> sequence;
    std::vector<TokenId> tokens;  // the tokens in the sequence, while no text runs here
    std::uint64_t last_used = 0;
    std::optional<Running> running;
  };

  void run();
  bool wait_for_work();
  void admit(Waiting waiting, Slot& slot);
  Slot* free_slot(std::span<const TokenId> prompt);  // null: n_texts texts are running
  void step();
  void find_donor(Slot& slot) const;
  bool wait_for_donor(Slot& slot);
  std::vector<Slot*> plan_step();
  void make_room();
  bool drop_oldest_tokens();
  bool wants_logits(std::span<Slot* const> order) const;
  void choose(Slot& slot, std::span<float> logits, TokenId likeliest);
  void leave(Slot& slot);
  void finish(Slot& slot, TextEvent event, StopReason reason, const std::string& error = {},
              bool grammar_failed = false);
  void fail_all(const char* problem) noexcept;
  void emit(TextEvent event);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const Options options_;
  const std::function<void()> on_event_;

  // Only the thread uses these.
  std::vector<Slot> slots_;
  std::vector<Input> inputs_;
  Matrix<float> logits_;            // [n_texts, vocab_size]
  std::vector<TokenId> likeliest_;  // see Backend::forward_greedy
  std::vector<TokenProbability> scratch_;
  std::vector<float> raw_;  // a row of logits before the penalty
  std::uint64_t uses_ = 0;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::set<TextId> unfinished_;  // waiting or running texts, without the cancelled ones
  std::vector<TextEvent> events_;
  SchedulerStats stats_;
  TextId next_id_ = 1;
  bool stop_ = false;

  std::thread thread_;  // last, because it uses the other members
};

}  // namespace stagecraft
