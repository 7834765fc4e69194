//! Rows that belong together.

use std::collections::HashMap;

/// The rows of each group, by the ids of all rows: groups in order of their first row.
pub fn members<'a>(ids: impl IntoIterator<Item = &'a i64>) -> Vec<Vec<usize>> {
    let (mut groups, mut places) = (Vec::<Vec<usize>>::new(), HashMap::new());
    for (row, id) in ids.into_iter().enumerate() {
        let place = *places.entry(*id).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(rows) => rows.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::members;

    #[test]
    fn groups_come_in_the_order_of_their_first_rows() {
        assert_eq!(members(&[7, -1, 7, 3, -1]), [vec![0, 2], vec![1, 4], vec![3]]);
        assert!(members(&[]).is_empty());
    }
}
