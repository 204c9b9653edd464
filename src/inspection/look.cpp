#include "inspection/look.h"

#include <algorithm>
#include <chrono>

#include "backends/sequence_state.h"
#include "base/error.h"
#include "generation/common_prefix.h"
#include "model/placement.h"
#include "model/plan_work.h"

namespace stagecraft {
namespace {

using Clock = std::chrono::steady_clock;

// Stores the last row of each result, and the time between results.
class Observer {
 public:
  Observer(const Plan& plan, std::size_t seq_len)
      : plan_(plan), seq_len_(seq_len), stream_(residual_stream(plan)) {
    look_.residuals = Matrix<float>(plan.n_layers, plan.buffer(stream_).width);
    for (const Step& step : plan.steps) {
      bytes_.push_back(sizeof(float) * work_per_token(plan, step.kind, seq_len).numbers_read);
    }
    last_ = Clock::now();
  }

  void see(int layer, std::string_view name, MatrixView<const float> value) {
    const auto now = Clock::now();
    if (name == kAttentionProbs) {
      add_attention(layer, value);
    } else {
      add_step(layer, name, now, value.row(value.rows() - 1));
    }
    last_ += Clock::now() - now;  // do not count the time of this function
  }

  Look take(std::span<const float> logits) {
    look_.logits.assign(logits.begin(), logits.end());
    return std::move(look_);
  }

 private:
  void add_attention(int layer, MatrixView<const float> value) {
    const AttentionStep* const attention = attention_of(plan_, layer);
    if (attention == nullptr) {
      throw Error("look: layer {}: expected an attention step in the plan, found none", layer);
    }
    const std::size_t n_heads = attention->n_heads;
    const std::size_t q_len = value.rows() / n_heads;
    Matrix<float> probabilities(n_heads, seq_len_);
    for (std::size_t head = 0; head < n_heads; ++head) {
      std::ranges::copy(value.row(head * q_len + q_len - 1),
                        probabilities.view().row(head).begin());
    }
    look_.attention.push_back({layer, std::move(probabilities)});
  }

  // Adds one Look::Step for the steps of the plan up to the next one with this name.
  void add_step(int layer, std::string_view name, Clock::time_point now,
                std::span<const float> row) {
    double bytes = 0.0;
    BufferId written = kNone;
    while (next_ < plan_.steps.size()) {
      const Step& step = plan_.steps[next_];
      bytes += bytes_[next_++];
      if (step.layer != layer || step.name != name) continue;
      written = buffer_written(step.kind);
      break;
    }
    look_.steps.push_back(
        {layer, std::string(name), std::chrono::duration<double>(now - last_).count(), bytes});
    last_ = now;
    if (written != stream_ || layer < 0) return;
    std::ranges::copy(row, look_.residuals.view().row(static_cast<std::size_t>(layer)).begin());
  }

  const Plan& plan_;
  const std::size_t seq_len_;
  const BufferId stream_;
  std::vector<double> bytes_;  // by step
  std::size_t next_ = 0;       // index of the next step of the plan
  Clock::time_point last_;     // when the last result was finished
  Look look_;
};

}  // namespace

std::optional<Look> look(Session& session, std::span<const TokenId> tokens,
                         const std::function<bool()>& go_on) {
  const Plan& plan = session.engine().plan();
  if (tokens.empty() || tokens.size() > session.context()) {
    throw Error("look: expected 1 to {} tokens, found {}", session.context(), tokens.size());
  }
  place_text(plan, tokens);  // throws if no text can begin like this
  const std::size_t common = common_prefix(session.tokens(), tokens.first(tokens.size() - 1));
  const std::size_t length = session.tokens().size();
  // Under a PromptRule, all tokens depend on the whole prompt.
  const bool keeps = knows_states(plan, length, common) && (!plan.prompt || common == length);
  session.truncate(keeps ? common : 0);
  const std::size_t before =
      first_pass(plan, tokens) == tokens.size() ? 0 : tokens.size() - 1;  // before the last pass
  const std::size_t held = session.tokens().size();
  if (before > held && !session.feed(tokens.subspan(held, before - held), go_on)) {
    return std::nullopt;
  }
  if (go_on && !go_on()) return std::nullopt;
  Observer observer(plan, tokens.size());
  const ProbeScope probe(session.engine(),
                         [&](int layer, std::string_view name, MatrixView<const float> value) {
                           observer.see(layer, name, value);
                         });
  session.feed(tokens.subspan(before));
  return observer.take(session.logits());
}

void guess(Engine& engine, std::span<const float> residual, std::span<float> logits) {
  engine.step_results().score({residual.data(), 1, residual.size()},
                              {logits.data(), 1, logits.size()});
}

}  // namespace stagecraft
