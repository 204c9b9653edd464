#include "serve/glass_box.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/number.h"
#include "base/start_thread.h"
#include "base/utf8.h"
#include "generation/broken_model.h"
#include "generation/logit_rules.h"
#include "generation/ranking.h"
#include "generation/repeat_penalty.h"
#include "inspection/choices.h"
#include "inspection/peek.h"
#include "operators/softmax.h"
#include "serve/api_error.h"

namespace stagecraft {
namespace {

// Few digits keep the answer about a long text short; they are enough to draw and to compare.
double rounded(double value) {
  if (!std::isfinite(value)) return value > 0 ? 9999.0 : -9999.0;  // JSON has no infinity
  return number_of(fmt::format("{:.6g}", value)).value();
}
double rounded(float value) { return std::round(static_cast<double>(value) * 1e6) / 1e6; }

// A model that computes NaN has no answer to show, and JSON has no NaN.
void check_probabilities(std::span<const float> probabilities, std::size_t layer) {
  if (std::ranges::none_of(probabilities, [](float value) { return std::isnan(value); })) return;
  throw broken_model(fmt::format("the probability nan in layer {}", layer));
}

nlohmann::json layer_json(int layer) {
  return layer < 0 ? nlohmann::json() : nlohmann::json(layer);
}

// Writes the views of a Look as JSON.
struct Writer {
  const GlassRequest& request;
  const Tokenizer& tokenizer;
  const Look& look;

  std::string text(TokenId token) const {
    return utf8_with_replacements(tokenizer.bytes_of(token));
  }

  nlohmann::json choices() const {
    std::vector<float> changed = look.logits;
    const std::span<const TokenId> tokens = request.tokens;
    penalize_repeats(changed, tokens.last(std::min(tokens.size(), request.repeat_last_n)),
                     request.repeat_penalty);
    forbid_unlikely(changed, request.sampler.temperature, request.min_p);
    const Choices all = stagecraft::choices(look.logits, changed, request.sampler, request.top,
                                            request.next.value_or(-1));
    nlohmann::json list = nlohmann::json::array();
    for (const Choice& one : all.top) {
      list.push_back({{"token", one.token},
                      {"text", text(one.token)},
                      {"special", tokenizer.is_special(one.token)},
                      {"rank", one.rank},
                      {"logit", rounded(one.logit)},
                      {"probability", rounded(one.probability)},
                      {"after_temperature", rounded(one.after_temperature)},
                      {"after_top_k", rounded(one.after_top_k)},
                      {"after_top_p", rounded(one.after_top_p)}});
    }
    return {{"choices", std::move(list)},
            {"kept_top_k", all.kept_top_k},
            {"kept_top_p", all.kept_top_p}};
  }

  nlohmann::json attention() const {
    nlohmann::json texts = nlohmann::json::array(), layers = nlohmann::json::array();
    for (const TokenId token : request.tokens) texts.push_back(text(token));
    for (const Look::Attention& one : look.attention) {
      nlohmann::json heads = nlohmann::json::array();
      for (std::size_t head = 0; head < one.probabilities.rows(); ++head) {
        check_probabilities(one.probabilities.view().row(head),
                            static_cast<std::size_t>(one.layer));
        nlohmann::json& row = heads.emplace_back(nlohmann::json::array());
        for (const float value : one.probabilities.view().row(head)) {
          row.push_back(std::round(static_cast<double>(value) * 1e4) / 1e4);
        }
      }
      layers.push_back({{"layer", one.layer}, {"heads", std::move(heads)}});
    }
    return {{"texts", std::move(texts)}, {"layers", std::move(layers)}};
  }

  nlohmann::json layers(Engine& engine) const {
    nlohmann::json list = nlohmann::json::array();
    std::vector<float> next(engine.plan().vocab_size);
    for (std::size_t layer = 0; layer < look.residuals.rows(); ++layer) {
      guess(engine, look.residuals.view().row(layer), next);
      softmax(next, next);
      check_probabilities(next, layer);
      nlohmann::json guesses = nlohmann::json::array();
      for (const RankedToken& one : top_tokens(next, request.top)) {
        guesses.push_back(
            {{"token", one.token}, {"text", text(one.token)}, {"probability", rounded(one.value)}});
      }
      nlohmann::json entry = {{"layer", layer}, {"guesses", std::move(guesses)}};
      if (request.next) {
        const float probability = next[static_cast<std::size_t>(*request.next)];
        entry["next"] = {{"rank", rank_of(next, *request.next)},
                         {"probability", rounded(probability)}};
      }
      list.push_back(std::move(entry));
    }
    return {{"layers", std::move(list)}};
  }

  nlohmann::json steps(std::size_t n_threads) const {
    nlohmann::json list = nlohmann::json::array();
    double seconds = 0.0, bytes = 0.0;
    for (const Look::Step& step : look.steps) {
      list.push_back({{"layer", layer_json(step.layer)},
                      {"name", step.name},
                      {"microseconds", rounded(step.seconds * 1e6)},
                      {"bytes", step.bytes}});
      seconds += step.seconds;
      bytes += step.bytes;
    }
    return {{"steps", std::move(list)},
            {"microseconds", rounded(seconds * 1e6)},
            {"bytes", bytes},
            {"threads", n_threads}};
  }

  nlohmann::json view(Engine& engine) const {
    switch (request.view) {
      case GlassView::Choices:
        return choices();
      case GlassView::Attention:
        return attention();
      case GlassView::Layers:
        return layers(engine);
      case GlassView::Steps:
        return steps(engine.n_threads());
    }
    return {};
  }
};

}  // namespace

GlassBox::GlassBox(std::function<Engine()> open, const Tokenizer& tokenizer, std::size_t context,
                   std::function<void()> on_answer)
    : open_(std::move(open)),
      tokenizer_(tokenizer),
      context_(context),
      on_answer_(std::move(on_answer)),
      thread_(start_thread([this] { run(); })) {}

GlassBox::~GlassBox() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    running_.reset();
  }
  changed_.notify_one();
  thread_.join();
}

std::optional<GlassId> GlassBox::submit(GlassRequest request) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() == kMaxWaiting) return std::nullopt;
  waiting_.push_back({next_id_, std::move(request)});
  changed_.notify_one();
  return next_id_++;
}

void GlassBox::cancel(GlassId id) {
  const std::lock_guard lock(mutex_);
  if (running_ == id) running_.reset();
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.id == id; });
  std::erase_if(answers_, [&](const GlassAnswer& answer) { return answer.id == id; });
}

std::vector<GlassAnswer> GlassBox::take_answers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

bool GlassBox::goes_on() {
  const std::lock_guard lock(mutex_);
  return running_.has_value();
}

void GlassBox::run() {
  while (true) {
    Waiting job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
      running_ = job.id;
    }
    GlassAnswer answer{job.id, {}, {}};
    try {
      if (auto json = this->answer(job.request)) answer.json = std::move(*json);
    } catch (const std::exception& problem) {
      answer.error = fmt::format("glass box: {}", problem.what());
    }
    {
      const std::lock_guard lock(mutex_);
      if (!running_) continue;  // it was cancelled
      running_.reset();
      answers_.push_back(std::move(answer));
    }
    on_answer_();
  }
}

std::optional<std::string> GlassBox::answer(const GlassRequest& request) {
  if (!engine_) engine_.emplace(open_());
  if (!session_) session_.emplace(*engine_, context_);
  if (seen_ != request.tokens || !look_) {
    seen_.clear();
    look_ = look(*session_, request.tokens, [this] { return goes_on(); });
    if (!look_) return std::nullopt;
    seen_ = request.tokens;
  }
  return json_text(Writer{request, tokenizer_, *look_}.view(*engine_)) + "\n";
}

}  // namespace stagecraft
