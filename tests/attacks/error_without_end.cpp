// Attack: an error message of the greatest length that a compiler writes.
// Ends as: uncompiled
#define X1 aaaaaaaaaa
#define CAT(a, b) a##b
#define JOIN(a, b) CAT(a, b)
#define X2 JOIN(JOIN(JOIN(X1, X1), JOIN(X1, X1)), JOIN(JOIN(X1, X1), JOIN(X1, X1)))
#define X3 JOIN(JOIN(JOIN(X2, X2), JOIN(X2, X2)), JOIN(JOIN(X2, X2), JOIN(X2, X2)))
#define X4 JOIN(JOIN(JOIN(X3, X3), JOIN(X3, X3)), JOIN(JOIN(X3, X3), JOIN(X3, X3)))
#define X5 JOIN(JOIN(JOIN(X4, X4), JOIN(X4, X4)), JOIN(JOIN(X4, X4), JOIN(X4, X4)))
int x = X5;
