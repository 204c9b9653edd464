#pragma once

#include <span>

#include "backends/cpu/sequence_tokens.h"
#include "backends/cpu/thread_slice.h"

namespace stagecraft {

// One thread's work in the attention of a pass: it reads q, k and v, which all threads have
// written, and writes the result of attention. Keys and values are stored in panels (see
// PackedKvCache), so scores and weighted sums are ordinary matrix products. Softmax is computed
// block by block (online softmax, Milakov and Gimelshein 2018).
//
// A text is divided into segments. The sums of each segment are computed alone, then they are
// joined in order. So threads can share the attention of one token to a long text ("flash
// decoding"), and the bits of the result do not depend on the number of threads.
class PackedAttention {
 public:
  PackedAttention(std::span<const SequenceTokens> batch, const PackedWeights& weights,
                  CpuWorkspace& w, const ThreadSlice& slice);

  // Stores the new keys and values of a layer, if it has some, and computes the attention of all
  // rows, or only of scored rows. Ends with a barrier.
  void run(const FusedAttention& step, const CacheShape& shape, bool only_scored);

 private:
  struct Place {  // of a row
    PackedKvCache* cache;
    std::size_t position;
  };
  // Queries or keys as their linear wrote them, and what is done to each head.
  struct Heads {
    MatrixView<const float> x;
    const HeadRotation& rotation;
    PackedNorm norm;
  };
  // One attention step, with values that are needed often.
  struct Layer {
    const FusedAttention& step;
    CacheShape shape;
    std::size_t group;   // query heads per key head
    std::size_t padded;  // head_dim, rounded up to a panel
    Heads q, k;
    MatrixView<float> v, out;
  };
  Place place_of(std::size_t row) const;
  Heads heads(BufferId id, const HeadRotation& rotation) const {
    return {w_.buffer(id), rotation, weights_.norm(rotation.norm)};
  }
  // Norms and rotates head `index` of a row. out: [head_dim], not in the row.
  void rotate(const Heads& heads, std::size_t row, std::size_t index, std::size_t head_dim,
              float* out) const;
  void store_key(const Layer& layer, std::size_t row, std::size_t kv_head);
  // stores: each task stores its key and value first.
  void attend(const Layer& layer, bool stores, bool only_scored);
  // Neighbouring rows of one sequence, one key and value head, and all query heads that share it.
  // Queries are in the order of rows, then heads.
  struct Task {
    const PackedKvCache& cache;
    std::size_t position;  // of the first row
    std::size_t row, n;    // in the pass
    std::size_t kv_head;
  };
  void attend_rows(const Layer& layer, const Task& task);
  // Computes only one segment. The thread that joins the last segment writes the result.
  void attend_segment(const Layer& layer, const Task& task, Range segments, std::size_t segment);

  // each(query, its row, its head), for all queries of a task
  template <class Each>
  static void for_queries(const Layer& layer, const Task& task, Each each) {
    for (std::size_t r = 0; r < task.n; ++r) {
      for (std::size_t h = 0; h < layer.group; ++h) {
        each(r * layer.group + h, r, task.kv_head * layer.group + h);
      }
    }
  }
  // The segments that the rows of a task attend to.
  Range segments(const Layer& layer, const Task& task) const;
  void prepare_queries(const Layer& layer, const Task& task);
  // The numbers of AttentionSums from query `first` on.
  struct Sums {
    Sums(AttentionSums& sums, std::size_t first)
        : largest(&sums.largest[first]),
          total(&sums.total[first]),
          weighted(sums.weighted.data() + first * sums.weighted.cols()) {}
    float *largest, *total;
    float* weighted;  // [queries, padded]
  };
  void begin(const Layer& layer, const Task& task, const Sums& sums) const;
  void sum_segment(const Layer& layer, const Task& task, std::size_t segment, const Sums& sums);
  void join(const Layer& layer, const Task& task, const Sums& part, const Sums& whole) const;
  void write_result(const Layer& layer, const Task& task, const Sums& sums) const;

  // Keys and values of one head in the cache.
  struct CachedHead {
    const PackedKvCache& cache;
    CacheId id;
    std::size_t kv_head;
    PanelMatrix keys(std::size_t chunk) const { return cache.keys(id, kv_head, chunk); }
    PanelMatrix values(std::size_t chunk, std::size_t positions) const {
      return cache.values(id, kv_head, chunk, positions);
    }
  };
  // Positions [begin, end) of one step of online softmax. No query attends to positions of a chunk
  // before first_chunk.
  struct Block {
    std::size_t begin, end, first_chunk;
  };
  // The scores of query i for the positions of a block.
  float* scores_of(std::size_t i) const {
    return scratch_.scores.f32.data() + i * CpuWorkspace::kScoreStride;
  }
  void score(const CachedHead& head, const Block& block, const Rows& queries,
             std::size_t n_queries);
  void softmax(const Layer& layer, std::size_t i, const Block& block, std::size_t first,
               std::size_t last, float slope, const Sums& sums);
  void weigh(const CachedHead& head, const Block& block, bool more, std::size_t n_queries,
             float* out, std::size_t width);

  std::span<const SequenceTokens> batch_;
  const PackedWeights& weights_;
  CpuWorkspace& w_;
  const ThreadSlice& slice_;
  CpuWorkspace::Scratch& scratch_;
  const Kernels& k_;
  std::size_t rows_;  // of all sequences
  bool single_;       // one row per sequence
};

}  // namespace stagecraft
