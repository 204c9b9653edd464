#include "backends/cpu/cpu_pass.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "backends/cpu/gated_panels.h"
#include "backends/cpu/packed_attention.h"
#include "backends/cpu/packed_experts.h"
#include "backends/cpu/packed_states.h"
#include "backends/pass_check.h"
#include "base/error.h"
#include "operators/read_row.h"
#include "operators/route.h"
#include "operators/sigmoid.h"
#include "operators/softmax.h"

namespace stagecraft {
namespace {

// This table of kernels is indexed by values of the plan's enum.
static_assert(std::extent_v<decltype(Kernels::rope)> ==
              static_cast<std::size_t>(RopeStep::Pairs::Neighbours) + 1);

// Rows times bytes of weights per thread. With less work, threads would wait for each other longer
// than they compute.
constexpr std::size_t kMinWorkPerThread = std::size_t{1} << 20;
// A pass with less work than this is shorter than the time for which the operating system gives a
// processor to another program. If a thread had to wait for that in such a pass, the first thread
// computes the next kSingleThreadPasses passes alone.
constexpr std::size_t kShortPass = std::size_t{8} << 20;
constexpr std::size_t kSingleThreadPasses = 1000;

// The work of one thread in a pass. Between two barriers no thread writes what another reads.
class Pass {
 public:
  Pass(const CpuProgram& program, std::span<const SequenceTokens> batch, CpuWorkspace& w,
       MatrixView<float> logits, std::size_t thread, std::size_t n_threads)
      : program_(program),
        weights_(program.weights),
        batch_(batch),
        w_(w),
        logits_(logits),
        k_(w.kernels),
        slice_(w, thread, n_threads),
        attention_(batch, program.weights, w, slice_),
        experts_(program.weights, w, slice_),
        states_(batch, program.plan, program.weights, w, slice_),
        rows_(count_tokens(batch)),
        scores_all_(logits.rows() == rows_) {}

  void run() {
    write_angles();  // published by the barrier of the embedding, the first step of every plan
    for (const FusedStep& step : program_.fused.steps) {
      std::visit([this](const auto& one) { compute(one); }, step);
      if (rows_ == 0) return;  // no row is scored
    }
  }

 private:
  // Calls visit(row, text, t) for this thread's slice of the rows: row `row` is token t of `text`.
  void for_own_rows(const auto& visit) const {
    std::size_t row = 0;
    const Range mine = slice_.of(rows_);
    for (const SequenceTokens& one : batch_) {
      for (std::size_t t = 0; t < one.tokens.size(); ++t, ++row) {
        if (row >= mine.begin && row < mine.end) visit(row, one, t);
      }
    }
  }

  // Writes cos and sin of the angles of this thread's slice of the rows.
  void write_angles() {
    for_own_rows([&](std::size_t row, const SequenceTokens& one, std::size_t t) {
      write_angles(row, one.cache->placement, one.cache->length() + t);
    });
  }

  // The same for one row, which is token `index` of its text.
  void write_angles(std::size_t row, const Placement& placement, std::size_t index) {
    for (std::size_t table = 0; table < w_.rotations.size(); ++table) {
      const auto& [name, frequencies, positions] = program_.plan.frequencies[table];
      const std::size_t position = placement.position(positions, index);
      const auto cos = w_.rotations[table].cos.view().row(row);
      const auto sin = w_.rotations[table].sin.view().row(row);
      for (std::size_t i = 0; i < frequencies.size(); ++i) {
        const float angle = static_cast<float>(position) * frequencies[i];
        cos[i] = std::cos(angle);
        sin[i] = std::sin(angle);
      }
    }
  }

  void compute(const EmbedStep& step) {
    const auto out = buffer(step.out);
    for_own_rows([&](std::size_t row, const SequenceTokens& one, std::size_t t) {
      if (step.table == kNone && step.positions == kNone) {
        std::ranges::copy(one.rows.row(t), out.row(row).begin());
      } else if (step.table == kNone) {
        std::ranges::fill(out.row(row), 0.0f);
      } else {
        const auto token = static_cast<std::size_t>(one.tokens[t]);
        read_row(weights_.table(step.table), token, out.row(row));
        if (step.scale != 1.0f) k_.scale(step.scale, out.cols(), out.row(row).data());
      }
      if (step.positions != kNone) {
        const auto learned = scratch_row(out.cols());
        read_row(weights_.table(step.positions), one.cache->length() + t, learned);
        k_.add(learned.data(), out.cols(), out.row(row).data());
      }
    });
    slice_.barrier();
  }

  void compute(const FusedLinears& step) {
    ActivationTypes types = {};
    for (const FusedLinear& linear : step.linears) {
      slice_.add_type(weights_.matrix(linear.weight), types);
    }
    const bool reads_gated = step.input.in == rounded_;
    const Rows rows = reads_gated ? Rows{&w_.gated, {}} : prepare(step.input, types);
    rounded_ = kNone;
    multiply(step, rows, false);
    if (!scores_all_) multiply(step, rows, true);
    // No barrier after the logits: the pass ends for each thread when its slice is done.
    if (step.linears.back().out != program_.plan.logits) slice_.barrier();
  }

  // Multiplies the linears of a group that need all rows, or those that need only scored rows.
  void multiply(const FusedLinears& step, const Rows& rows, bool scored_only) {
    std::array<Product, FusedLinears::kMaxLinears> products;
    std::size_t n = 0;
    for (const FusedLinear& linear : step.linears) {
      const bool some = linear.scored_only && !scores_all_;
      if (some == scored_only) products[n++] = product(linear);
    }
    if (n == 0) return;
    slice_.multiply(rows, {scored_only ? first_scored_row() : 0, rows_}, {products.data(), n});
  }

  // If the next step reads only rounded numbers, they are rounded here: as floats they would fill
  // the L2 cache.
  void compute(const FusedGate& step) {
    const PanelMatrix& gate = weights_.matrix(step.gate.weight);
    const PanelMatrix& up = weights_.matrix(step.up.weight);
    ActivationTypes types = {};
    slice_.add_type(gate, types);
    slice_.add_type(up, types);
    const Rows x = prepare(step.input, types);
    const GatedProduct product{gate, up, weights_.vector(step.gate.bias),
                               weights_.vector(step.up.bias), step.function};
    const GatedOut out{buffer(step.out), rounded_types(step.readers), &w_.gated};
    if (is_rounded(out.types)) rounded_ = step.out;
    const std::size_t together = slice_.rows_together(gate);
    slice_.slice_tiles(gate.panel_count(), {0, rows_}, together, [&](Range panels, Range rows) {
      gated_panels(k_, slice_, product, x, panels, rows, out);
    });
    slice_.barrier();
  }

  // The rounded formats in which the kernels of these linears need their rows; empty if there are
  // no linears, or if one of them needs floats, or Q8_K: its blocks are wider than a panel.
  ActivationTypes rounded_types(std::span<const WeightId> readers) const {
    ActivationTypes types = {};
    for (const WeightId reader : readers) slice_.add_type(weights_.matrix(reader), types);
    const bool later = has(types, ActivationType::F32) || has(types, ActivationType::Q8_K);
    return later ? ActivationTypes{} : types;
  }

  void compute(const RouteStep& step) {
    const auto x = buffer(step.x);
    const auto score = step.score == RouteStep::Score::Softmax ? softmax : sigmoid;
    const std::span<const float> bias(weights_.vector(step.bias),
                                      step.bias == kNone ? 0 : x.cols());
    const Range mine = slice_.of(rows_);
    for (std::size_t r = mine.begin; r < mine.end; ++r) {
      score(x.row(r), x.row(r));
      route(x.row(r), {step.n_chosen, step.normed, bias, step.scale, step.groups});
    }
    slice_.barrier();
  }

  void compute(const FusedExperts& step) { experts_.run(step, rows_); }

  void compute(const FusedAttention& step) {
    attention_.run(step, program_.plan.cache(step.step.cache), step.scored_only && !scores_all_);
  }

  void compute(const ActivateStep& step) {
    const auto activate = k_.activate[static_cast<std::size_t>(step.function)];
    const auto gate = buffer(step.gate), out = buffer(step.out);
    const Range mine = slice_.of(rows_);
    for (std::size_t r = mine.begin; r < mine.end; ++r) {
      const float* const up = step.up == kNone ? nullptr : &buffer(step.up)(r, step.first_column);
      activate(gate.row(r).data(), up, out.cols(), out.row(r).data());
    }
    slice_.barrier();
  }

  void compute(const ShortConvStep& step) { states_.run(step); }
  void compute(const DeltaStep& step) { states_.run(step, rows_); }

  // Rows are multiplied as f32: the weights of this step are exact (see Weight), so their layout is
  // F32, F16 or BF16.
  void compute(const HeadsLinearStep& step) {
    const auto in = buffer(step.in).row_range(0, rows_), out = buffer(step.out);
    const std::size_t n_heads = step.weights.size();
    const std::size_t from = in.cols() / n_heads, to = out.cols() / n_heads;
    const std::size_t panels = panels_of(to);
    float* const values = slice_.scratch().tile.data();
    const Range mine = slice_.of(n_heads * panels);
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      const std::size_t head = i / panels, panel = i % panels, output = panel * kPanelOutputs;
      const PanelMatrix& weight = weights_.matrix(step.weights[head]);
      const Rows x{nullptr, in.col_range(head * from + step.first_column, weight.inputs)};
      const std::size_t most = slice_.max_rows(weight);
      for (std::size_t r = 0; r < rows_; r += most) {
        const std::size_t n = std::min(most, rows_ - r);
        slice_.tile(weight, panel, x, r, n, {values});
        for (std::size_t k = 0; k < n; ++k) {
          std::copy_n(values + k * kPanelOutputs, std::min(kPanelOutputs, to - output),
                      &out(r + k, head * to + output));
        }
      }
    }
    slice_.barrier();
  }

  void compute(const JoinStep& step) {
    const auto a = buffer(step.a), b = buffer(step.b), out = buffer(step.out);
    const std::size_t first = a.cols() / step.n_heads, second = b.cols() / step.n_heads;
    const Range mine = slice_.of(rows_);
    for (std::size_t r = mine.begin; r < mine.end; ++r) {
      float* to = &out(r, 0);
      for (std::size_t head = 0; head < step.n_heads; ++head) {
        to = std::copy_n(&a(r, head * first), first, to);
        to = std::copy_n(&b(r, head * second), second, to);
      }
    }
    slice_.barrier();
  }

  void compute(const FusedAdd& step) {
    const auto x = buffer(step.x), in = buffer(step.in);
    float* const row = scratch_row(in.cols()).data();
    const PackedNorm norm = weights_.norm(step.norm);
    const Range mine = slice_.of(rows_);
    for (std::size_t r = mine.begin; r < mine.end; ++r) {
      if (norm) {
        norm.apply(k_, in.row(r).data(), row);
      } else {
        std::ranges::copy(in.row(r), row);
      }
      if (step.scale != 1.0f) k_.scale(step.scale, in.cols(), row);
      k_.add(row, x.cols(), x.row(r).data());
    }
    slice_.barrier();
  }

  void compute(const FusedNorm& step) {
    const auto in = buffer(step.in), out = buffer(step.out);
    const std::size_t group = step.norm.group;
    const PackedNorm norm = weights_.norm(step.norm);
    const std::size_t first = step.scored_only && !scores_all_ ? first_scored_row() : 0;
    const Range mine = slice_.of(rows_ - first);
    for (std::size_t r = first + mine.begin; r < first + mine.end; ++r) {
      for (std::size_t c = 0; c < in.cols(); c += group) {
        norm.apply(k_, &in(r, c), &out(r, c), c / group);
      }
    }
    slice_.barrier();
  }

  void compute(const MapStep& step) {
    const auto x = buffer(step.x);
    const float* by = weights_.vector(step.by);
    float scale = step.scale;
    if (by != nullptr && program_.plan.weight(step.by).elements() == 1) {
      scale *= *by;
      by = nullptr;
    }
    constexpr auto kProduct = static_cast<std::size_t>(ActivateStep::Function::Identity);
    // The linears that write the logits end without a barrier, and a thread has written columns of
    // all rows. All other steps end with a barrier.
    if (step.x == program_.plan.logits) slice_.barrier();
    const Range mine = slice_.of(rows_);
    for (std::size_t r = mine.begin; r < mine.end; ++r) {
      float* const row = x.row(r).data();
      if (by != nullptr) k_.activate[kProduct](row, by, x.cols(), row);
      if (step.soft_cap != 0.0f) {
        k_.soft_cap(row, x.cols(), scale, step.soft_cap);
      } else if (scale != 1.0f) {
        k_.scale(scale, x.cols(), row);
      }
      if (step.clip != 0.0f) k_.clip(row, x.cols(), step.clip);
    }
    if (step.x != program_.plan.logits) slice_.barrier();
  }

  void compute(const FusedSelect& step) {
    if (scores_all_) return;
    if (slice_.is_first()) {
      std::size_t to = 0;
      std::size_t row = 0;
      for (const SequenceTokens& one : batch_) {
        row += one.unscored();
        for (const std::size_t end = row + one.n_logits; row < end; ++row, ++to) {
          if (row == to) continue;
          for (const BufferId id : step.buffers) {
            const auto rows = buffer(id);
            std::ranges::copy(rows.row(row), rows.row(to).data());
          }
        }
      }
    }
    slice_.barrier();
    rows_ = logits_.rows();
  }

  std::size_t first_scored_row() const {
    std::size_t row = 0;
    for (const SequenceTokens& one : batch_) {
      if (one.n_logits != 0) return row + one.unscored();
      row += one.tokens.size();
    }
    return row;
  }

  Rows prepare(const LinearInput& input, ActivationTypes types) const {
    return slice_.prepare(buffer(input.in).row_range(0, rows_), weights_.norm(input.norm), types);
  }
  Product product(const FusedLinear& linear) const {
    const auto activate =
        linear.activation ? k_.activate[static_cast<std::size_t>(*linear.activation)] : nullptr;
    return {&weights_.matrix(linear.weight), weights_.vector(linear.bias), buffer(linear.out),
            linear.add, activate};
  }
  // A row of this thread's scratch memory.
  std::span<float> scratch_row(std::size_t width) const {
    return {slice_.scratch().prepared.f32.data(), width};
  }
  MatrixView<float> buffer(BufferId id) const {
    return id == program_.plan.logits ? logits_ : w_.buffer(id);
  }

  const CpuProgram& program_;
  const PackedWeights& weights_;
  std::span<const SequenceTokens> batch_;
  CpuWorkspace& w_;
  MatrixView<float> logits_;
  const Kernels& k_;
  ThreadSlice slice_;
  PackedAttention attention_;
  PackedExperts experts_;
  PackedStates states_;
  std::size_t rows_;  // of the current step: all tokens of the pass, later only the scored ones
  bool scores_all_;   // all tokens of the pass are scored
  // The rows of this buffer are only in CpuWorkspace::gated, rounded, until the next FusedLinears.
  BufferId rounded_ = kNone;
};

// Throws Error if the pass is impossible. Changes nothing.
void check(const Plan& plan, std::span<const SequenceTokens> batch, const CpuWorkspace& w,
           MatrixView<float> logits) {
  PassCheck pass(plan, w.max_rows);
  for (const auto& [cache, tokens, n_logits, state, rows] : batch) {
    pass.text(tokens, n_logits, rows);
    check_next_tokens(plan, tokens, cache->length(), cache->capacity());
    if (!plan.states.empty() && state == nullptr) {
      throw Error("forward: expected the states of the sequence, found none");
    }
    if (cache->length() == 0) place_text(plan, tokens);  // throws if no text begins like this
  }
  pass.end(logits);
}

// Prepares the caches for their new tokens. Throws Error if there is no memory for them; a cache
// may then have more pages, but no token more.
void begin(const Plan& plan, std::span<const SequenceTokens> batch) {
  for (const SequenceTokens& one : batch) {
    if (!one.cache->reserve(one.cache->length() + one.tokens.size())) {
      throw Error("forward: not enough memory for the KV cache of all texts");
    }
  }
  for (const auto& [cache, tokens, n_logits, state, rows] : batch) {
    if (cache->length() == 0) cache->placement = place_text(plan, tokens);
  }
}

}  // namespace

SequenceState cpu_state(const Plan& plan) { return SequenceState(plan, kPanelOutputs); }
double cpu_state_bytes(const Plan& plan) { return sequence_state_bytes(plan, kPanelOutputs); }

void cpu_pass(const CpuProgram& program, std::span<const SequenceTokens> batch, CpuWorkspace& w,
              MatrixView<float> logits) {
  check(program.plan, batch, w, logits);
  begin(program.plan, batch);
  for (auto& next : w.next_task) next = 0;
  const std::size_t threads = w.threads.size();
  const std::size_t work = count_tokens(batch) * program.weights.bytes.per_token;
  const bool threads_wait = work < kShortPass && w.single_thread_passes > 0;
  if (threads == 1 || work < kMinWorkPerThread * threads || threads_wait) {
    if (threads_wait) --w.single_thread_passes;
    Pass(program, batch, w, logits, 0, 1).run();
  } else {
    const std::uint32_t sleeps = w.threads.sleeps();
    w.threads.run(
        [&](std::size_t thread) { Pass(program, batch, w, logits, thread, threads).run(); });
    if (work < kShortPass && w.threads.sleeps() != sleeps)
      w.single_thread_passes = kSingleThreadPasses;
  }
  for (const SequenceTokens& one : batch) one.cache->advance(one.tokens.size());
}

}  // namespace stagecraft
