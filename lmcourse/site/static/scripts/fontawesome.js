/* Empty in place of the 1.6 MB of icons that the theme loads here: its font has those that pages show. */
