# What ./stage debug teaches gdb.
define row
  print *($arg0.data_ + $arg1 * $arg0.stride_)@$arg0.cols_
end
document row
row VIEW T: the elements of row T of a MatrixView.
end
