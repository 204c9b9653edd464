#include "serve/scheduler.h"

#include <algorithm>
#include <new>

#include "base/error.h"
#include "base/start_thread.h"
#include "base/stopwatch.h"
#include "generation/common_prefix.h"
#include "generation/ranking.h"
#include "model/placement.h"

namespace stagecraft {
namespace {

// Rows of prompts per step while texts are being generated. More rows make the matrix products more
// efficient. Fewer rows keep the step short: a long prompt must not delay the tokens of other
// texts.
constexpr std::size_t kRowsPerPrompt = 8;
constexpr std::size_t kLeastPromptRows = 16, kMostPromptRows = 64;
constexpr std::size_t kMaxRows = 512;  // per step
constexpr std::size_t kMinSharedTokens = 16;
constexpr std::size_t kMoreSlots = 64;      // slots for earlier texts, if sequences share memory
constexpr std::size_t kTokensPerDrop = 64;  // about a page of the CPU backend

// The score of the chosen token, with the n_top likeliest tokens.
TokenScore score_of(std::span<const float> logits, TokenId token, std::size_t n_top) {
  const auto norm = static_cast<float>(log_sum_exp(logits));
  TokenScore score{token, logits[static_cast<std::size_t>(token)] - norm, {}};
  if (n_top == 0) return score;  // top_tokens would copy all of them
  for (const auto& [id, logit] : top_tokens(logits, n_top))
    score.top.emplace_back(id, logit - norm);
  return score;
}

}  // namespace

Scheduler::Scheduler(Engine& engine, const Tokenizer& tokenizer, const Options& options,
                     std::function<void()> on_event) try
    : engine_(engine),
      tokenizer_(tokenizer),
      options_(options),
      on_event_(std::move(on_event)),
      logits_(options.n_texts, engine.plan().vocab_size),
      likeliest_(options.n_texts),
      scratch_(engine.plan().vocab_size),
      raw_(engine.plan().vocab_size) {
  // In one step, each slot may have one row. If prompts cannot be cut, these rows are in addition
  // to those of a prompt.
  const std::size_t most = pass_rows(engine.plan(), kMaxRows, options.context);
  const std::size_t beside = engine.plan().prompt ? options.n_texts : 0;
  const std::size_t rows = std::max(options.n_texts, most + beside);
  for (auto& sequence : engine.make_sequences(options.n_texts, kMoreSlots, options.context, rows)) {
    slots_.emplace_back().sequence = std::move(sequence);
  }
  thread_ = start_thread([this] { run(); });
} catch (const std::bad_alloc&) {
  throw Error(
      "{} texts at the same time, with a context of {} tokens each, need more memory than is "
      "available",
      options.n_texts, options.context);
}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::optional<TextId> Scheduler::submit(std::vector<TextRequest> requests) {
  for (const TextRequest& request : requests) place_text(engine_.plan(), request.prompt);
  const std::lock_guard lock(mutex_);
  if (unfinished_.size() + requests.size() > options_.n_texts + options_.max_waiting) {
    return std::nullopt;
  }
  const TextId first = next_id_;
  try {
    for (TextRequest& request : requests) {
      unfinished_.insert(next_id_);
      waiting_.push_back({next_id_++, std::move(request)});
    }
  } catch (...) {  // no memory: all of them or none
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.id >= first; });
    unfinished_.erase(unfinished_.lower_bound(first), unfinished_.end());
    throw;
  }
  changed_.notify_one();
  return first;
}

void Scheduler::cancel(TextId text) {
  const std::lock_guard lock(mutex_);
  unfinished_.erase(text);
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.id == text; });
}

std::vector<TextEvent> Scheduler::take_events() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

SchedulerStats Scheduler::stats() const {
  const std::lock_guard lock(mutex_);
  SchedulerStats stats = stats_;
  stats.waiting = waiting_.size();
  stats.running = unfinished_.size() - waiting_.size();
  return stats;
}

void Scheduler::emit(TextEvent event) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (!unfinished_.contains(event.text)) return;
    first = events_.empty();
    events_.push_back(std::move(event));  // if this fails, fail_all() must find the text unfinished
    if (events_.back().end) unfinished_.erase(events_.back().text);
  }
  if (first) on_event_();
}

void Scheduler::run() {
  while (true) {
    try {
      if (!wait_for_work()) return;
      step();
    } catch (const std::exception& problem) {
      fail_all(problem.what());
    }
  }
}

// Removes cancelled texts, admits waiting ones, and sleeps while there are none. Returns false at
// the end. Throws Error if texts wait although fail_all() has dropped every slot.
bool Scheduler::wait_for_work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (slots_.empty() && !waiting_.empty()) {
      throw Error("the memory of earlier texts cannot be used again; start the server again");
    }
    bool busy = false;
    for (Slot& slot : slots_) {
      if (slot.running && !unfinished_.contains(slot.running->id)) leave(slot);
      busy = busy || slot.running;
    }
    while (!waiting_.empty()) {
      Slot* const slot = free_slot(waiting_.front().request.prompt);
      if (slot == nullptr) break;
      Waiting waiting = std::move(waiting_.front());
      waiting_.pop_front();
      // A long prompt is decoded token by token. Meanwhile other threads may submit and cancel
      // texts: if this one is cancelled, it leaves after its first step, as any running text.
      lock.unlock();
      admit(std::move(waiting), *slot);
      lock.lock();
      busy = true;
    }
    if (busy) return true;
    changed_.wait(lock);
  }
  return false;
}

// The free slot that shares the longest beginning with this prompt, if little else would be lost:
// with spare slots, at most kMinSharedTokens tokens; without, at most as many as the beginning
// has. Otherwise the free slot that was unused for the longest time.
Scheduler::Slot* Scheduler::free_slot(std::span<const TokenId> prompt) {
  Slot* best = nullptr;
  Slot* oldest = nullptr;
  std::size_t best_prefix = 0;
  std::size_t running = 0;
  for (Slot& slot : slots_) {
    running += slot.running ? 1 : 0;
    if (running == options_.n_texts) return nullptr;
    if (slot.running) continue;
    if (oldest == nullptr || slot.last_used < oldest->last_used) oldest = &slot;
    const std::size_t prefix = common_prefix(slot.tokens, prompt);
    const std::size_t lost = slot.tokens.size() - prefix;
    if (prefix > best_prefix &&
        lost <= (slots_.size() > options_.n_texts ? kMinSharedTokens : prefix)) {
      best = &slot;
      best_prefix = prefix;
    }
  }
  return best != nullptr ? best : oldest;
}

void Scheduler::admit(Waiting waiting, Slot& slot) {
  TextRequest& request = waiting.request;
  // The last token is always computed, because the logits for the first new token come from it.
  const std::size_t known =
      std::min(common_prefix(slot.tokens, request.prompt), request.prompt.size() - 1);
  const std::size_t kept = slot.sequence->truncate(known);
  VisibleText visible(tokenizer_, request.prompt, std::move(request.options.stops));
  Continuation continuation(std::move(request.prompt), request.options.generation,
                            Random(request.seed), options_.context, request.options.grammar.get(),
                            std::move(request.options.rules));
  slot.tokens.clear();
  slot.running.emplace(
      Running{waiting.id, std::move(continuation), std::move(visible), request.n_top, kept, kept});
  find_donor(slot);
  const std::lock_guard lock(mutex_);
  stats_.cached_tokens += kept;
}

// Finds the slot whose tokens share the longest beginning with the prompt of this slot.
void Scheduler::find_donor(Slot& slot) const {
  if (!engine_.plan().states.empty()) return;  // states are known only at the end of a text
  Running& running = *slot.running;
  const auto prompt = running.continuation.tokens();
  std::size_t least = running.fed + kMinSharedTokens;
  for (const Slot& other : slots_) {
    if (&other == &slot) continue;
    const std::size_t prefix = common_prefix(other.running ? other.running->continuation.tokens()
                                                           : std::span<const TokenId>(other.tokens),
                                             prompt);
    const std::size_t shared = std::min(prefix, prompt.size() - 1);
    if (shared < least) continue;
    least = shared + 1;
    running.donor = &other;
    running.donor_text = other.running ? other.running->id : 0;
    running.shared = shared;
  }
}

// Copies the shared beginning from the donor. Returns true while the donor is still computing it.
bool Scheduler::wait_for_donor(Slot& slot) {
  Running& running = *slot.running;
  if (running.donor == nullptr) return false;
  const Slot& donor = *running.donor;
  const bool runs = donor.running.has_value();
  const auto held = runs ? donor.running->continuation.tokens().first(donor.running->fed)
                         : std::span<const TokenId>(donor.tokens);
  if (common_prefix(held, running.continuation.tokens()) < running.shared) {
    if (runs && donor.running->id == running.donor_text) return true;
  } else if (slot.sequence->copy(*donor.sequence, running.shared)) {
    const std::lock_guard lock(mutex_);
    stats_.cached_tokens += running.shared - running.fed;
    running.fed = running.cached = running.shared;
  } else {  // the sequence may be empty now
    running.fed = std::min(running.fed, slot.sequence->length());
    running.cached = std::min(running.cached, running.fed);
  }
  running.donor = nullptr;
  return false;
}

// Fills inputs_. Returns the slots in the same order.
std::vector<Scheduler::Slot*> Scheduler::plan_step() {
  std::vector<Slot*> order;
  const auto left = [](const Slot* slot) {
    return slot->running->continuation.tokens().size() - slot->running->fed;
  };
  for (Slot& slot : slots_) {
    if (slot.running && !wait_for_donor(slot)) order.push_back(&slot);
  }
  std::ranges::stable_sort(order, {},
                           left);  // texts being generated first, then the shortest prompts
  const auto writing = static_cast<std::size_t>(
      std::ranges::count_if(order, [&](const Slot* slot) { return left(slot) == 1; }));
  std::size_t prompts = order.size() - writing;
  std::size_t rows = engine_.max_rows() - writing;  // at least one per prompt
  std::size_t budget = rows;                        // for prompts that may be cut
  if (writing > 0) {
    const std::size_t few = std::clamp(kRowsPerPrompt * prompts, kLeastPromptRows, kMostPromptRows);
    budget = std::min(rows, std::max(few, prompts));
  }
  inputs_.clear();
  std::vector<Slot*> taken;
  for (Slot* slot : order) {
    const auto tokens = slot->running->continuation.tokens();
    const std::size_t fed = slot->running->fed;
    const std::size_t least = fed == 0 ? first_pass(engine_.plan(), tokens) : 1;
    std::size_t n = 1;
    if (left(slot) > 1) {
      n = std::min(left(slot), std::max({least, budget / prompts, std::size_t{1}}));
      --prompts;
      if (n > rows) continue;  // it waits for a step with more free rows
      rows -= n;
      budget -= std::min(budget, n);
    }
    inputs_.push_back({slot->sequence.get(), tokens.subspan(fed, n), n == left(slot) ? 1u : 0u});
    taken.push_back(slot);
  }
  return taken;
}

// Reserves memory for the tokens of the step. There is always enough for n_texts running texts of
// the greatest length.
void Scheduler::make_room() {
  for (const Input& input : inputs_) {
    const std::size_t length = input.sequence->length() + input.tokens.size();
    while (!input.sequence->reserve(length) && drop_oldest_tokens()) {
    }
  }
}

// Returns false if there is nothing left to drop.
bool Scheduler::drop_oldest_tokens() {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_) {
    if (slot.running || slot.tokens.empty()) continue;
    if (oldest == nullptr || slot.last_used < oldest->last_used) oldest = &slot;
  }
  if (oldest == nullptr) return false;
  const std::size_t length = oldest->tokens.size();
  oldest->tokens.resize(oldest->sequence->truncate(length - std::min(length, kTokensPerDrop)));
  return true;
}

void Scheduler::step() {
  const std::vector<Slot*> order = plan_step();
  make_room();
  const auto scored = static_cast<std::size_t>(
      std::ranges::count_if(inputs_, [](const Input& input) { return input.n_logits == 1; }));
  const Stopwatch watch;
  const auto likeliest = std::span(likeliest_).first(scored);
  if (wants_logits(order)) {
    engine_.forward(inputs_, logits_.top_rows(scored));
    std::ranges::fill(likeliest, -1);
  } else {
    engine_.forward_greedy(inputs_, logits_.top_rows(scored), likeliest);
  }
  const double seconds = watch.seconds();
  std::size_t row = 0;
  std::size_t prompt_tokens = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Running& running = *order[i]->running;
    const std::size_t n = inputs_[i].tokens.size();
    if (running.fed < running.continuation.prompt_size()) prompt_tokens += n;
    running.fed += n;
    if (inputs_[i].n_logits != 1) continue;
    choose(*order[i], logits_.view().row(row), likeliest[row]);
    ++row;
  }
  const std::lock_guard lock(mutex_);
  stats_.passes += 1;
  stats_.pass_seconds += seconds;
  stats_.prompt_tokens += prompt_tokens;
}

// True if a text whose next token is chosen in this step needs its logits.
bool Scheduler::wants_logits(std::span<Slot* const> order) const {
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Running& running = *order[i]->running;
    const bool is_greedy = running.continuation.is_greedy() && !running.n_top;
    if (inputs_[i].n_logits == 1 && !is_greedy) return true;
  }
  return false;
}

// Chooses the next token of a text and emits its piece of text, and the end if the text has ended.
void Scheduler::choose(Slot& slot, std::span<float> logits, TokenId likeliest) {
  Running& running = *slot.running;
  TextEvent event;
  event.text = running.id;
  if (running.n_top) std::ranges::copy(logits, raw_.begin());
  Continuation::Step next;
  try {
    next = running.continuation.next(logits, scratch_, likeliest);
  } catch (const GrammarError& error) {
    return finish(slot, std::move(event), StopReason::Stopped, error.problem(), true);
  } catch (const Error& problem) {
    return finish(slot, std::move(event), StopReason::Stopped, problem.what());
  }
  if (next.token) {
    {
      const std::lock_guard lock(mutex_);
      stats_.new_tokens += 1;
    }
    event.offset = running.visible.characters();
    event.piece = running.visible.push(*next.token);
    if (running.n_top) event.score = score_of(raw_, *next.token, *running.n_top);
    if (running.visible.stopped()) next.end = StopReason::Stopped;
  }
  if (next.end) {
    event.piece += running.visible.finish();
    finish(slot, std::move(event), *next.end);
  } else if (!event.piece.empty() || event.score) {
    emit(std::move(event));
  }
}

// Frees the slot, which keeps the keys and values for later texts.
void Scheduler::leave(Slot& slot) {
  const auto tokens = slot.running->continuation.tokens().first(slot.running->fed);
  slot.tokens.assign(tokens.begin(), tokens.end());
  slot.last_used = ++uses_;
  slot.running.reset();
}

void Scheduler::finish(Slot& slot, TextEvent event, StopReason reason, const std::string& error,
                       bool grammar_failed) {
  const Running& running = *slot.running;
  event.end = {reason,         running.continuation.prompt_size(),
               running.cached, running.continuation.made().size(),
               error,          grammar_failed};
  leave(slot);
  emit(std::move(event));
}

// Ends every running text with an error, and every waiting one if no slot is left. Empties all
// slots, because their contents may be wrong; drops those that cannot be emptied, for example
// because the GPU failed.
void Scheduler::fail_all(const char* problem) noexcept {
  for (Slot& slot : slots_) {
    slot.running.reset();
    slot.tokens.clear();
  }
  std::erase_if(slots_, [](Slot& slot) {
    try {
      slot.sequence->truncate(0);
      return false;
    } catch (...) {
      return true;
    }
  });
  bool first = false;
  try {
    const std::lock_guard lock(mutex_);
    first = events_.empty();
    if (slots_.empty()) {
      stats_.usable = false;
      waiting_.clear();
    }
    // Texts are admitted in the order of their ids: those that wait come after the running ones.
    const auto end =
        waiting_.empty() ? unfinished_.end() : unfinished_.lower_bound(waiting_.front().id);
    for (auto text = unfinished_.begin(); text != end; text = unfinished_.erase(text)) {
      TextEvent event;
      event.text = *text;
      event.end = {.reason = StopReason::Stopped, .error = problem};
      events_.push_back(std::move(event));
    }
  } catch (...) {  // no memory for an event: these texts end with the next failure
  }
  if (first) on_event_();
}

}  // namespace stagecraft
