//! Products of f64 matrices, each on one thread: callers already run in parallel over tiles.

/// A row-major matrix.
pub struct Matrix<'a> {
    /// Its elements, row-major.
    pub values: &'a [f64],
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

/// Adds `left · rightᵀ` to `product`, `[left.rows, right.rows]`.
///
/// # Panics
/// When the sizes do not fit.
pub fn add_product_transposed(product: &mut [f64], left: &Matrix, right: &Matrix) {
    assert_eq!(left.columns, right.columns, "a product sums over equal lengths");
    add_product(product, left, right, [right.rows, 1, right.columns]);
}

/// Adds `left · right` to `product`, `[left.rows, right.columns]`.
///
/// # Panics
/// When the sizes do not fit.
pub fn add_product_plain(product: &mut [f64], left: &Matrix, right: &Matrix) {
    assert_eq!(left.columns, right.rows, "a product sums over equal lengths");
    add_product(product, left, right, [right.columns, right.columns, 1]);
}

/// `right` is read with the layout `[columns, stride of the summed dimension, stride of the columns]`.
fn add_product(product: &mut [f64], left: &Matrix, right: &Matrix, layout: [usize; 3]) {
    let [columns, sum_stride, column_stride] = layout;
    assert_eq!(
        left.values.len(),
        left.rows * left.columns,
        "the left matrix is whole"
    );
    assert_eq!(
        right.values.len(),
        right.rows * right.columns,
        "the right matrix is whole"
    );
    assert_eq!(
        product.len(),
        left.rows * columns,
        "the product has the sizes of its factors"
    );
    // SAFETY: the assertions ensure that every element reached by the sizes and strides lies in its slice, and
    // `product` is borrowed exclusively, so it overlaps neither factor.
    unsafe {
        matrixmultiply::dgemm(
            left.rows,
            left.columns,
            columns,
            1.0,
            left.values.as_ptr(),
            left.columns as isize,
            1,
            right.values.as_ptr(),
            sum_stride as isize,
            column_stride as isize,
            1.0,
            product.as_mut_ptr(),
            columns as isize,
            1,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_the_textbook_s() {
        let left = Matrix {
            values: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            rows: 2,
            columns: 3,
        };
        let right = Matrix {
            values: &[1.0, 0.0, 2.0, 0.0, 1.0, 1.0],
            rows: 2,
            columns: 3,
        };
        let mut product = [100.0, 0.0, 0.0, 0.0];
        add_product_transposed(&mut product, &left, &right);
        assert_eq!(product, [107.0, 5.0, 16.0, 11.0]);

        let tall = Matrix {
            values: &[1.0, 0.0, 2.0, 0.0, 1.0, 1.0],
            rows: 3,
            columns: 2,
        };
        let mut product = [0.0; 4];
        add_product_plain(&mut product, &left, &tall);
        assert_eq!(product, [8.0, 3.0, 20.0, 6.0]);
    }
}
