#include <algorithm>

#include "course/worker/calls.h"
#include "course/worker/chain.h"
#include "course/worker/stopped_thread.h"
#include "operators/matmul_packed.h"

namespace stagecraft::stages {
namespace {

// While this object lives, a matrix of the arguments holds other numbers.
class Gone {
 public:
  explicit Gone(MatrixView<float> matrix) : matrix_(matrix) {
    for (std::size_t r = 0; r < matrix_.rows(); ++r) {
      kept_.insert(kept_.end(), matrix_.row(r).begin(), matrix_.row(r).end());
      std::ranges::reverse(matrix_.row(r));
      for (float& value : matrix_.row(r)) value = -value;
    }
  }
  ~Gone() {
    for (std::size_t r = 0; r < matrix_.rows(); ++r) {
      std::copy_n(kept_.data() + r * matrix_.cols(), matrix_.cols(), matrix_.row(r).begin());
    }
  }
  Gone(const Gone&) = delete;
  Gone& operator=(const Gone&) = delete;

 private:
  MatrixView<float> matrix_;
  std::vector<float> kept_;
};

Matrix<float> another_weight(MatrixView<const float> b) {
  const Stoppable stoppable(false);
  Matrix<float> other(b.rows(), b.cols());
  for (std::size_t r = 0; r < b.rows(); ++r) {
    std::ranges::transform(b.row(r), other.view().row(r).begin(), [](float x) { return 3.0f - x; });
  }
  return other;
}

// Finds a PackedMatrix that refers to other memory: after pack_b, B is overwritten, the packed
// matrix is moved, and another weight is packed.
void call_matmul_packed(Arguments& args) {
  const auto a = args.matrix("a");
  const auto b = args.lent_matrix("b");
  const Matrix<float> other_b = another_weight(b);
  PackedMatrix first = pack_b(b);
  const PackedMatrix packed = std::move(first);
  const PackedMatrix other = pack_b(other_b.view());
  const bool rows_alone = args.has("each row alone");
  // The same rows at other places: they, too, must give the same bits.
  const PackedMatrix head = rows_alone ? pack_b(b.row_range(0, 1)) : PackedMatrix();
  const PackedMatrix tail = rows_alone ? pack_b(b.row_range(1, b.rows() - 1)) : PackedMatrix();
  const Gone gone(b);
  matmul_packed(a, packed, args.out_matrix("c", a.rows(), packed.rows));
  if (!rows_alone) return;
  const auto alone = args.out_matrix("alone", a.rows(), packed.rows);
  for (std::size_t r = 0; r < a.rows(); ++r) {
    matmul_packed(a.row_range(r, 1), head, alone.row_range(r, 1).col_range(0, 1));
    matmul_packed(a.row_range(r, 1), tail, alone.row_range(r, 1).col_range(1, tail.rows));
  }
}

void call_chain(Arguments& args) {
  const auto noise = args.vector("noise");
  const PackedMatrix packed = pack_b(args.matrix("b"));
  run_chain(args, noise, packed.cols,
            [&](MatrixView<const float> a, MatrixView<float> c) { matmul_packed(a, packed, c); });
}

const Callable kSimdCalls{{"matmul_packed", call_matmul_packed},
                          {"matmul_packed, again and again", call_chain}};

}  // namespace

}  // namespace stagecraft::stages
