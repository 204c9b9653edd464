// The textbook operators, compared with PyTorch's dumps.
#include "operators/attention.h"
#include "operators/exact_gelu.h"
#include "operators/gelu_tanh.h"
#include "operators/layer_norm.h"
#include "operators/matmul_transb.h"
#include "operators/neighbour_rope.h"
#include "operators/rms_norm.h"
#include "operators/rope.h"
#include "operators/silu.h"
#include "operators/softmax.h"
#include "operators/swiglu.h"
#include "tests/operators/dump.h"

namespace stagecraft {
namespace {

TEST(Silu, AgreesWithPyTorch) {
  for_each_case("silu", [](const DumpCase& c) {
    const std::vector<float> x = c.vector("x");
    std::vector<float> y(x.size());
    silu(x, y);
    c.expect("y", y);
  });
}

TEST(Swiglu, AgreesWithPyTorch) {
  for_each_case("swiglu", [](const DumpCase& c) {
    const std::vector<float> gate = c.vector("gate");
    std::vector<float> y(gate.size());
    swiglu(gate, c.vector("up"), y);
    c.expect("y", y);
  });
}

TEST(Gelu, AgreesWithPyTorch) {
  for_each_case("exact_gelu", [](const DumpCase& c) {
    const std::vector<float> x = c.vector("x");
    std::vector<float> y(x.size());
    exact_gelu(x, y);
    c.expect("y", y);
    gelu_tanh(x, y);
    c.expect("y_tanh", y);
  });
}

TEST(LayerNorm, AgreesWithPyTorch) {
  for_each_case("layer_norm", [](const DumpCase& c) {
    const Matrix<float> x = c.matrix("x");
    Matrix<float> y(x.rows(), x.cols());
    layer_norm(x.view(), c.vector("weight"), c.vector("bias"), c.scalar("eps"), y.view());
    c.expect("y", y);
  });
}

TEST(RmsNorm, AgreesWithPyTorch) {
  for_each_case("rms_norm", [](const DumpCase& c) {
    const Matrix<float> x = c.matrix("x");
    Matrix<float> y(x.rows(), x.cols());
    rms_norm(x.view(), c.vector("weight"), c.scalar("eps"), y.view());
    c.expect("y", y);
  });
}

TEST(MatmulTransB, AgreesWithPyTorch) {
  for_each_case("matmul_transb", [](const DumpCase& c) {
    const Matrix<float> a = c.matrix("a");
    const Matrix<float> b = c.matrix("b");
    Matrix<float> result = c.matrix("c");
    matmul_transb(c.scalar("alpha"), a.view(), b.view(), c.scalar("beta"), result.view());
    c.expect("c", result);
  });
}

TEST(Softmax, AgreesWithPyTorch) {
  for_each_case("softmax", [](const DumpCase& c) {
    Matrix<float> x = c.matrix("x");
    for (std::size_t r = 0; r < x.rows(); ++r) softmax(x.view().row(r), x.view().row(r));
    c.expect("y", x);
  });
}

TEST(Rope, AgreesWithPyTorch) {
  for_each_case("rope", [](const DumpCase& c) {
    Matrix<float> x = c.matrix("x");
    rope(x.view(), c.vector("inv_freq"), c.size("first_position"));
    c.expect("y", x);
  });
}

TEST(NeighbourRope, AgreesWithPyTorch) {
  for_each_case("neighbour_rope", [](const DumpCase& c) {
    Matrix<float> x = c.matrix("x");
    neighbour_rope(x.view(), c.vector("inv_freq"), c.size("first_position"));
    c.expect("y", x);
  });
}

TEST(Attention, AgreesWithPyTorch) {
  for_each_case("attention", [](const DumpCase& c) {
    const Matrix<float> q = c.matrix("q");
    const Matrix<float> k = c.matrix("k");
    const Matrix<float> v = c.matrix("v");
    const AttentionShape shape{c.size("n_heads"), c.size("n_kv_heads"), c.size("head_dim"),
                               c.size("window")};
    Matrix<float> probabilities(shape.n_heads * q.rows(), k.rows());
    Matrix<float> out(q.rows(), q.cols());
    attention(q.view(), k.view(), v.view(), shape, probabilities.view(), out.view());
    c.expect("probabilities", probabilities);
    c.expect("out", out);
  });
}

}  // namespace
}  // namespace stagecraft
