#include "backends/cpu/packed_weights.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "backends/large_model.h"
#include "base/mapped_file.h"
#include "model/plan_weights.h"
#include "operators/read_row.h"

namespace stagecraft {
namespace {

// A matrix to be packed, and its place in memory.
struct Job {
  const Weight* weight;
  const StoredTensor* stored;
  const StoredTensor* source;  // the checkpoint's; may hold other weights, too
  PanelMatrix* packed;
  std::size_t offset;  // of its first panel
};

using PanelsLeft = std::map<const StoredTensor*, std::atomic<std::size_t>>;

// The weights of which a token reads only one row.
std::vector<WeightId> tables(const Plan& plan) {
  std::vector<WeightId> found;
  for (const Step& step : plan.steps) {
    const auto* embed = std::get_if<EmbedStep>(&step.kind);
    if (embed == nullptr) continue;
    for (const WeightId id : {embed->table, embed->positions}) {
      if (id != kNone) found.push_back(id);
    }
  }
  return found;
}

// Finds the tensors and gives each matrix its place, in the order of the fused steps.
class Planner {
 public:
  // `weights` must not move until it is packed: the jobs point into it.
  Planner(const Plan& plan, const Checkpoint& checkpoint, PackedWeights& weights)
      : plan_(plan),
        checkpoint_(checkpoint),
        weights_(weights),
        is_large_(is_large(checkpoint)),
        sources_(find_weights(plan, checkpoint)),
        is_read_(weights_of_steps(plan)),
        tables_(tables(plan)) {
    weights.matrices.resize(plan.weights.size());
    weights.vectors.resize(plan.weights.size());
    for (std::size_t i = 0; i < plan.weights.size(); ++i) {
      if (is_read_[i] && !plan.weights[i].is_matrix()) {
        weights.vectors[i] = read_vector(plan.weights[i], *sources_[i]);
      }
      weights.stored.push_back(stored_weight(plan.weights[i], *sources_[i]));
    }
  }

  void place(const FusedPlan& fused) {
    for (const FusedStep& step : fused.steps) {
      if (const auto* gate = std::get_if<FusedGate>(&step)) {
        place({gate->gate.weight, gate->up.weight});
      } else if (const auto* experts = std::get_if<FusedExperts>(&step)) {
        place_experts(*experts);
      } else if (const auto* conv = std::get_if<ShortConvStep>(&step)) {
        read_taps(conv->taps);
      } else {
        for (const FusedMatrix& one : matrices_of(step)) place({one.weight});
      }
    }
  }

  PackedBytes bytes() const {
    PackedBytes bytes = {bytes_, bytes_ - unchosen_};
    for (const WeightId table : tables_) {
      if (checkpoint_.is_copy(*source(table))) bytes.copied_tables += source(table)->bytes.size();
    }
    std::set<std::string> repacked;
    for (const Job& job : jobs_) {
      const std::string_view stored = dtype_name(job.stored->dtype),
                             packed = layout_name(job.packed->layout);
      if (stored != packed) repacked.insert(fmt::format("{} as {}", stored, packed));
    }
    bytes.repacked = fmt::format("{}", fmt::join(repacked, ", "));
    return bytes;
  }

  // For each tensor of the checkpoint, the number of panels to pack from it. A table, and a tensor
  // that another part of the model reads, has one more, which is never packed: so its copy is kept.
  PanelsLeft count_panels() const {
    PanelsLeft left;
    for (const StoredTensor* source : sources_) left[source] = 0;
    for (const Job& job : jobs_) left[job.source] += job.packed->panel_count();
    for (const WeightId table : tables_) ++left[source(table)];
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (!is_read_[i]) ++left[sources_[i]];
    }
    return left;
  }

  // Call it when all matrices are packed.
  void keep_only_tables() {
    std::vector<StoredTensor> stored(weights_.stored.size());
    for (const WeightId id : tables_) {
      const auto at = static_cast<std::size_t>(id);
      stored[at] = std::move(weights_.stored[at]);
    }
    weights_.stored = std::move(stored);
  }

  const std::vector<Job>& jobs() const { return jobs_; }

 private:
  const StoredTensor* source(WeightId id) const { return sources_[static_cast<std::size_t>(id)]; }

  // Stores one row per tap, with the taps of all columns side by side.
  void read_taps(WeightId id) {
    const auto at = static_cast<std::size_t>(id);
    const StoredTensor& stored = weights_.stored[at];
    const std::size_t width = stored.shape[0], n_taps = stored.shape[1];
    std::vector<float> column(n_taps);
    std::vector<float>& taps = weights_.vectors[at];
    taps.resize(width * n_taps);
    for (std::size_t c = 0; c < width; ++c) {
      read_row(stored, c, column);
      for (std::size_t j = 0; j < n_taps; ++j) taps[j * width + c] = column[j];
    }
  }

  void place_experts(const FusedExperts& fused) {
    const std::size_t before = bytes_;
    for (const ExpertsStep::Expert& expert : fused.step.experts) {
      place({expert.gate, expert.up});
      place({expert.down});
    }
    const std::size_t n = fused.step.experts.size();
    unchosen_ += (bytes_ - before) / n * (n - fused.n_chosen);
  }

  // Gives matrices of the same shape their place. Their panels alternate.
  void place(std::initializer_list<WeightId> ids) {
    std::size_t stride = 0;
    for (const WeightId id : ids) {
      const auto at = static_cast<std::size_t>(id);
      const StoredTensor& stored = weights_.stored[at];
      PanelMatrix& packed = weights_.matrices[at];
      packed = {packed_layout(plan_.weights[at], stored, is_large_), stored.shape[0],
                stored.shape[1], nullptr, 0};
      jobs_.push_back({&plan_.weights[at], &stored, sources_[at], &packed, bytes_ + stride});
      stride += panel_bytes(packed.layout, packed.inputs);
    }
    const auto placed = std::span(jobs_).last(ids.size());
    for (Job& job : placed) job.packed->stride = stride;
    bytes_ += stride * placed.front().packed->panel_count();
  }

  const Plan& plan_;
  const Checkpoint& checkpoint_;
  PackedWeights& weights_;
  const bool is_large_;
  std::vector<const StoredTensor*> sources_;  // by WeightId
  std::vector<bool> is_read_;                 // by WeightId: whether a step reads it
  std::vector<WeightId> tables_;
  std::vector<Job> jobs_;
  std::size_t bytes_ = 0;
  std::size_t unchosen_ = 0;  // bytes of experts that are not chosen for a token
};

// Writes the panel of outputs [first, first + 32).
void pack_outputs(const Job& job, std::size_t first, std::span<std::byte> panel) {
  const WeightLayout layout = job.packed->layout;
  if (job.weight->stored.is_contiguous()) return pack_panel(*job.stored, layout, first, panel);
  const std::size_t n = std::min(kPanelOutputs, job.packed->outputs - first);
  std::vector<std::byte> memory;
  pack_panel(weight_rows(*job.weight, *job.stored, first, n, memory), layout, 0, panel);
}

// Gives memory back, so that the model is not in memory twice. A copy is dropped when its last
// panel is packed, or at once if it is never packed. Pages of the file are released after every 4
// MB of panels.
class Sources {
 public:
  Sources(const Checkpoint& checkpoint, PanelsLeft left)
      : checkpoint_(checkpoint), left_(std::move(left)) {
    for (const auto& [source, panels] : left_) {
      if (panels == 0) checkpoint_.drop_copy(*source);
    }
  }

  void packed(const Job& job, std::size_t panels) {  // thread-safe
    if ((left_.at(job.source) -= panels) == 0) checkpoint_.drop_copy(*job.source);
    constexpr std::size_t kReleaseEvery = std::size_t{4} << 20;
    const std::size_t bytes = panels * panel_bytes(job.packed->layout, job.packed->inputs);
    if ((bytes_ += bytes) < kReleaseEvery) return;
    bytes_ = 0;
    checkpoint_.release_pages();
  }

 private:
  const Checkpoint& checkpoint_;
  PanelsLeft left_;
  std::atomic<std::size_t> bytes_ = 0;  // since the last release
};

// Requests bytes of the file early; otherwise packing would wait for the disk at each page. It
// treats the bytes of all jobs as one sequence, and requests those that lie kAhead bytes behind the
// ones that are packed now.
class ReadAhead {
 public:
  explicit ReadAhead(const std::vector<Job>& jobs) : jobs_(jobs) {
    for (const Job& job : jobs) {
      begin_.push_back(size_);
      size_ += job.stored->bytes.size();
    }
    fetch(0, std::min(kAhead, size_));
  }

  // Call it before piece `i` of `n` of a job is packed.
  void packing(std::size_t job, std::size_t i, std::size_t n) const {
    const std::size_t bytes = jobs_[job].stored->bytes.size();
    fetch(std::min(size_, begin_[job] + bytes * i / n + kAhead),
          std::min(size_, begin_[job] + bytes * (i + 1) / n + kAhead));
  }

 private:
  static constexpr std::size_t kAhead = std::size_t{32} << 20;

  void fetch(std::size_t begin, std::size_t end) const {
    auto job =
        static_cast<std::size_t>(std::ranges::upper_bound(begin_, begin) - begin_.begin()) - 1;
    for (; begin < end; ++job) {
      const std::span<const std::byte> bytes = jobs_[job].stored->bytes;
      const std::size_t first = begin - begin_[job],
                        last = std::min(bytes.size(), end - begin_[job]);
      MappedFile::fetch_soon(bytes.subspan(first, last - first));
      begin += last - first;
    }
  }

  const std::vector<Job>& jobs_;
  std::vector<std::size_t> begin_;  // of each job
  std::size_t size_ = 0;
};

// Packs pieces of the matrices, a few panels each, until none is left. Several threads may call it
// at the same time: `next` is the next piece that no thread has taken.
void pack_pieces(const std::vector<Job>& jobs, const ReadAhead& ahead, Sources& sources,
                 std::byte* memory, std::atomic<std::size_t>& next) {
  constexpr std::size_t kPanels = 4;
  std::size_t first = 0;  // first piece of this job
  std::size_t piece = next++;
  for (const Job& job : jobs) {
    const std::size_t panels = job.packed->panel_count();
    const std::size_t pieces = (panels + kPanels - 1) / kPanels;
    const std::size_t bytes = panel_bytes(job.packed->layout, job.packed->inputs);
    for (; piece < first + pieces; piece = next++) {
      ahead.packing(static_cast<std::size_t>(&job - jobs.data()), piece - first, pieces);
      const std::size_t begin = (piece - first) * kPanels;
      const std::size_t end = std::min(panels, begin + kPanels);
      for (std::size_t i = begin; i < end; ++i) {
        pack_outputs(job, i * kPanelOutputs, {memory + job.offset + i * job.packed->stride, bytes});
      }
      sources.packed(job, end - begin);
    }
    first += pieces;
  }
}

// Packs all matrices with all threads.
void pack(const std::vector<Job>& jobs, Sources& sources, std::byte* memory, ThreadPool& threads) {
  if (jobs.empty()) return;
  for (const Job& job : jobs) job.packed->panels = memory + job.offset;
  const ReadAhead ahead(jobs);
  std::atomic<std::size_t> next = 0;
  threads.run([&](std::size_t) { pack_pieces(jobs, ahead, sources, memory, next); });
}

}  // namespace

// bf16 weights of large models are multiplied with rounded activations, and quantised ones always.
WeightLayout packed_layout(const Weight& weight, const StoredTensor& stored, bool large) {
  if (weight.exact && is_quantized(stored.dtype)) return WeightLayout::F32;
  const WeightLayout layout = panel_layout(stored);
  const bool rounded = layout == WeightLayout::BF16 && !weight.exact && large;
  return rounded ? WeightLayout::RoundedBF16 : layout;
}

PackedWeights pack_weights(const Plan& plan, const FusedPlan& fused, const Checkpoint& checkpoint,
                           ThreadPool& threads) {
  PackedWeights weights;
  Planner planner(plan, checkpoint, weights);
  planner.place(fused);
  weights.bytes = planner.bytes();
  for (PanelMatrix& matrix : weights.matrices) {
    matrix.prefetch = prefetch_for(weights.bytes.all);
  }
  weights.memory = LargeMemory(weights.bytes.all);
  Sources sources(checkpoint, planner.count_panels());
  pack(planner.jobs(), sources, weights.memory.data(), threads);
  checkpoint.release_pages();
  planner.keep_only_tables();
  return weights;
}

PackedBytes packed_bytes(const Plan& plan, const Checkpoint& checkpoint) {
  PackedWeights weights;
  Planner planner(plan, checkpoint, weights);
  planner.place(fuse(plan));
  return planner.bytes();
}

}  // namespace stagecraft
