//! What the user has chosen to see, and what keys change of it.

use telemetry::live::view::{LiveView, TenantLive};

use super::column::{is_idle, Column};
use super::key::Key;

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// The table of tenants.
    All,
    /// One tenant.
    Tenant(String),
    /// The list of keys.
    Help,
}

/// The user's choices.
#[derive(Clone, Debug)]
pub struct View {
    /// The page in view.
    pub page: Page,
    /// Sorted by.
    pub sort: Column,
    /// Largest first.
    pub descending: bool,
    /// Part of the names shown.
    pub filter: String,
    /// Keys go into the filter.
    pub editing: bool,
    /// The numbers stand still.
    pub paused: bool,
    /// Idle tenants are left out.
    pub hide_idle: bool,
    /// The tenant under the bar.
    pub selected: Option<String>,
}

/// What to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Draw.
    Draw,
    /// End.
    Quit,
}

impl View {
    /// A view sorted by a column, largest first (names from A).
    pub fn new(sort: Column, page: Page) -> Self {
        Self {
            page,
            sort,
            descending: !sort.is_text(),
            filter: String::new(),
            editing: false,
            paused: false,
            hide_idle: false,
            selected: None,
        }
    }

    /// The tenants shown, in their order.
    pub fn rows<'a>(&self, live: &'a LiveView) -> Vec<&'a TenantLive> {
        let wanted = self.filter.to_lowercase();
        let named = |tenant: &&TenantLive| tenant.name.to_lowercase().contains(&wanted);
        let active = |tenant: &&TenantLive| !(self.hide_idle && is_idle(tenant));
        let mut rows: Vec<&TenantLive> = live.tenants.iter().filter(named).filter(active).collect();
        rows.sort_by(|a, b| self.sort.compare(self.descending, a, b));
        rows
    }

    /// Applies a key. `names` are those of the rows in view, `page_rows` how many lines a page
    /// holds.
    pub fn key(&mut self, key: Key, names: &[&str], page_rows: usize) -> After {
        if key == Key::Interrupt {
            return After::Quit;
        }
        if self.editing {
            self.edit(key);
        } else if self.page == Page::Help {
            self.page = Page::All;
        } else if self.page == Page::All {
            return self.key_in_table(key, names, page_rows as isize);
        } else {
            match key {
                Key::Char('q') => return After::Quit,
                Key::Char('p' | ' ') => self.paused = !self.paused,
                Key::Char('?') => self.page = Page::Help,
                Key::Escape | Key::Backspace => self.page = Page::All,
                _ => {}
            }
        }
        After::Draw
    }

    fn key_in_table(&mut self, key: Key, names: &[&str], page_rows: isize) -> After {
        match key {
            Key::Char('q') => return After::Quit,
            Key::Char('p' | ' ') => self.paused = !self.paused,
            Key::Char('/') => self.editing = true,
            Key::Char('?') => self.page = Page::Help,
            Key::Char('i') => self.hide_idle = !self.hide_idle,
            Key::Char('r') => self.descending = !self.descending,
            Key::Char('s') => self.sort_next(1),
            Key::Char('S') => self.sort_next(-1),
            Key::Char('j') | Key::Down => self.select(names, 1),
            Key::Char('k') | Key::Up => self.select(names, -1),
            Key::PageDown => self.select(names, page_rows),
            Key::PageUp => self.select(names, -page_rows),
            Key::Home => self.selected = names.first().map(ToString::to_string),
            Key::End => self.selected = names.last().map(ToString::to_string),
            Key::Enter => {
                if let Some(name) = self
                    .selected
                    .clone()
                    .filter(|name| names.contains(&name.as_str()))
                {
                    self.page = Page::Tenant(name);
                }
            }
            Key::Escape => {
                if self.filter.is_empty() {
                    self.selected = None;
                }
                self.filter.clear();
            }
            _ => {}
        }
        After::Draw
    }

    fn edit(&mut self, key: Key) {
        match key {
            Key::Enter => self.editing = false,
            Key::Escape => {
                self.filter.clear();
                self.editing = false;
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(c) => self.filter.push(c),
            _ => {}
        }
    }

    fn sort_next(&mut self, step: isize) {
        let count = Column::ALL.len() as isize;
        let at = Column::ALL.iter().position(|column| *column == self.sort);
        let next = (at.unwrap_or(0) as isize + step).rem_euclid(count);
        self.sort = Column::ALL[next as usize];
        self.descending = !self.sort.is_text();
    }

    /// Moves the bar; from nowhere, to the first or the last.
    fn select(&mut self, names: &[&str], step: isize) {
        let Some(last) = names.len().checked_sub(1) else {
            return;
        };
        let at = self
            .selected
            .as_deref()
            .and_then(|name| names.iter().position(|one| *one == name));
        let next = match at {
            Some(at) => at.saturating_add_signed(step).min(last),
            None if step > 0 => 0,
            None => last,
        };
        self.selected = Some(names[next].to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn typed(view: &mut View, keys: &[Key]) -> After {
        let mut after = After::Draw;
        for key in keys {
            after = view.key(*key, &NAMES, 2);
        }
        after
    }

    #[test]
    fn the_bar_moves_within_the_rows() {
        let mut view = View::new(Column::Rate, Page::All);
        typed(&mut view, &[Key::Up]);
        assert_eq!(view.selected.as_deref(), Some("c"));
        typed(&mut view, &[Key::Down, Key::PageUp, Key::PageUp]);
        assert_eq!(view.selected.as_deref(), Some("a"));
        typed(&mut view, &[Key::Char('j'), Key::Enter]);
        assert_eq!(view.page, Page::Tenant("b".into()));
        typed(&mut view, &[Key::Escape]);
        assert_eq!(
            (view.page.clone(), view.selected.as_deref()),
            (Page::All, Some("b"))
        );
        view.selected = Some("gone".into());
        typed(&mut view, &[Key::Enter]);
        assert_eq!(view.page, Page::All, "who is not in view is not opened");
        view.key(Key::Down, &[], 2);
    }

    #[test]
    fn letters_go_into_the_filter_while_it_is_edited() {
        let mut view = View::new(Column::Rate, Page::All);
        let after = typed(
            &mut view,
            &[
                Key::Char('/'),
                Key::Char('q'),
                Key::Char('x'),
                Key::Backspace,
            ],
        );
        assert_eq!(
            (after, view.filter.as_str(), view.editing),
            (After::Draw, "q", true)
        );
        typed(&mut view, &[Key::Enter]);
        assert!(!view.editing);
        typed(&mut view, &[Key::Escape]);
        assert_eq!(view.filter, "");
        typed(&mut view, &[Key::Char('/'), Key::Char('q')]);
        assert_eq!(
            typed(&mut view, &[Key::Interrupt]),
            After::Quit,
            "Ctrl-C ends it anywhere"
        );
    }

    #[test]
    fn sorting_goes_round() {
        let mut view = View::new(Column::Tenant, Page::All);
        assert!(!view.descending, "names from A");
        typed(&mut view, &[Key::Char('S')]);
        assert_eq!((view.sort, view.descending), (Column::Conns, true));
        typed(&mut view, &[Key::Char('s'), Key::Char('r')]);
        assert_eq!((view.sort, view.descending), (Column::Tenant, true));
        assert_eq!(
            typed(&mut view, &[Key::Char('?'), Key::Char('q')]),
            After::Draw,
            "any key leaves the list of keys"
        );
        assert_eq!(typed(&mut view, &[Key::Char('q')]), After::Quit);
    }
}
